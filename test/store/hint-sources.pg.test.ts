import { expect, test } from 'vitest';
import { readHintStats } from '../../src/store/sellers/hint-sources.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { own, scrapeOf, STATS } from '../telemetry/stats.ts';
import { knownSkus, useStore } from './support.ts';

const store = useStore();
const STRANGE = `two\nlines, "quotes" and \\${'商'.repeat(30)}`;

const NOTHING = { unread: 0, sources: [] };

test('hint statistics match catalog.hint_sources, with the waiting hints; a deleted source is gone', async () => {
  const { sql } = store;
  expect(await readHintStats(sql)).toEqual(NOTHING);
  await knownSkus(sql, ['A', 'B', 'C'], { priceSource: 'live' });
  await sql`
    insert into catalog_internal.hint_sources (source, hints, pulled, tested, expected, unmoved, moves, last_hint)
    values ('new', 2, 1, 0, 0, 0, 0, now()), (${STRANGE}, 400, 120, 100, 80, 20, 150, now())`;
  await sql`
    insert into catalog_internal.waiting_hints (sku, source, hinted_at, hazard)
    values ('A', ${STRANGE}, now(), 1), ('B', ${STRANGE}, now(), 1), ('B', 'gone', now(), 1)`;
  await sql`select catalog.hint(sku, source) from unnest(array['A', 'B', 'C']) sku, unnest(array['new', 'never read']) source`;
  const precision = 1 - (4 * 0.7 + 20) / (4 + 80);
  expect(await readHintStats(sql)).toEqual({
    unread: 6,
    sources: [
      {
        source: STRANGE,
        hints: 400,
        refreshesBroughtForward: 120,
        precision: expect.closeTo(precision, 9) as number,
        recall: expect.closeTo((precision * 100) / 150, 9) as number,
        waiting: 2,
      },
      {
        source: 'new',
        hints: 2,
        refreshesBroughtForward: 1,
        precision: expect.closeTo(0.3, 9) as number,
        recall: 0,
        waiting: 0,
      },
    ],
  });
  await sql`delete from catalog_internal.hint_sources`;
  expect(await readHintStats(sql)).toEqual({ unread: 6, sources: [] });
});

test('two daemons show the same hint metrics, and none of a deleted source', async () => {
  const { sql } = store;
  const daemons = [createMetrics({ version: '1' }), createMetrics({ version: '1' })];
  const shown = async () =>
    await Promise.all(
      daemons.map(async (metrics) => {
        metrics.setMirror(scrapeOf({ ...STATS, hints: await readHintStats(sql) }));
        return own(await metrics.text()).filter((line) => /hint/.test(line));
      }),
    );
  await sql`
    insert into catalog_internal.hint_sources (source, hints, pulled, last_hint)
    values ('a', 10, 5, now()), (${STRANGE}, 3, 2, now())`;
  const [first, second] = await shown();
  expect(first).toHaveLength(2 * 5 + 1);
  expect(first).toEqual(second);
  expect(first).toContain(
    `catalog_mirror_hints_total{source="two\\nlines, \\"quotes\\" and \\\\${'商'.repeat(30)}"} 3`,
  );
  await sql`delete from catalog_internal.hint_sources where source = 'a'`;
  const [after] = await shown();
  expect(after).toHaveLength(5 + 1);
  expect(after?.filter((line) => line.includes('source="a"'))).toEqual([]);
});
