import { beforeEach, describe, expect, test } from 'vitest';
import type { StagedLine } from '../../src/store/catalog/compare-sql.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { readManifestSources } from '../../src/store/catalog/manifest-hints.ts';
import { pruneHints } from '../../src/store/sellers/hints.ts';
import { mostByManifest } from '../../src/sync/live/hints.ts';
import { baseline, line, type ManifestRun } from '../store/manifest.ts';
import { onlyScope } from '../store/scoping.ts';
import { found } from '../store/support.ts';
import { LIVE, moved, unmoved, useHints } from './hinting.ts';

const { store, hint, drain, came, claimed, answer, call, rate, dueIn, waiting, source, seen } = useHints();

/** The time in `minutes` from now, as lines contain it. */
const at = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
const BEFORE = at(-300);
const NEWER = at(-20);
/** All SKUs were refreshed an hour ago, and the snapshot was built a quarter of an hour ago. */
const GENERATED_AT = new Date(Date.now() - 15 * 60_000);

const lineOf = (sku: string, differs: Partial<StagedLine> = {}) =>
  line(sku, { priceSource: 'live', hash: null, sizes: 1, updatedAt: BEFORE, ...differs });

/** Applies a manifest in which these lines differ, with hints like syncManifest. */
async function manifest(differs: Readonly<Record<string, Partial<StagedLine>>>, run: ManifestRun = {}) {
  const records = await readManifestSources(store.sql);
  await baseline(
    store.url,
    LIVE.map((sku) => lineOf(sku, differs[sku])),
    {
      ...run,
      token: {
        snapshotId: `m${Math.random()}`,
        generatedAt: GENERATED_AT,
        hinting: records && { most: (lines) => mostByManifest(records, lines), seed: 7 },
        ...run.token,
      },
    },
  );
}
const queued = async () => {
  const rows = await store.sql<{ name: string }[]>`
    select sku || ' ' || source as name from catalog_internal.hints order by 1`;
  return rows.map(({ name }) => name);
};
/** Lets refreshes of an hour ago find two sizes. */
async function holdTwo(...skus: readonly string[]) {
  await call(...skus.map((sku) => found(sku, { 7: 100, 8: 100 })));
  await store.sql`update catalog.skus set asked_at = asked_at - interval '1 hour' where sku = any(${skus as string[]})`;
}
const each = (skus: readonly string[], differs: Partial<StagedLine>) =>
  Object.fromEntries(skus.map((sku) => [sku, differs]));

beforeEach(async () => {
  await manifest({}, { token: { hinting: null } });
  // Undo what the first manifest has marked.
  await store.sql`update catalog_internal.due set lane = catalog_internal.lane_of('live'), reason = 'live', due_at = now() + interval '1 day', held_until = null where sku like 'L%'`;
});

describe('newer lines of live SKUs', () => {
  test('hint if they are newer than the last refresh and the line before', async () => {
    await manifest({
      L00: { updatedAt: NEWER },
      L01: { updatedAt: at(-90) },
      L02: { updatedAt: null },
      L03: { updatedAt: at(-400) },
      L04: { updatedAt: at(600) },
    });
    expect(await queued()).toEqual(['L00 manifest.updated_at', 'L04 manifest.updated_at']);
    const [ahead] =
      await store.sql`select max(hinted_at) <= clock_timestamp() as past from catalog_internal.hints`;
    expect(ahead).toEqual({ past: true });
    expect(await came()).toBe(true);
    await drain();
    expect(await dueIn('L00')).toBeLessThan(1);
    expect(await dueIn('L01')).toBeGreaterThan(1000);
    expect(await source('manifest.updated_at')).toMatchObject({ hints: 2, pulled: 2 });
    expect(seen()).toEqual([]);
    await call(moved('L00'), unmoved('L04'));
    expect(await source('manifest.updated_at')).toMatchObject({ tested: 2, unmoved: 1 });
    expect((await rate('L00'))?.['hazard']).toBeNull();
  });

  test('hint once, and not again with the next manifest', async () => {
    await manifest({ L00: { updatedAt: NEWER } });
    const updatedAt = at(-10);
    await manifest({ L00: { updatedAt } });
    expect(await queued()).toEqual(['L00 manifest.updated_at']);
    await drain();
    await manifest({ L00: { updatedAt } });
    expect(await queued()).toEqual([]);
  });

  test('say nothing of a SKU that was asked for after them', async () => {
    const claim = await claimed('L00');
    await manifest({ L00: { updatedAt: NEWER } });
    await answer(claim, [unmoved('L00')]);
    await drain();
    expect(await waiting()).toEqual([]);
    expect(await source('manifest.updated_at')).toMatchObject({ hints: 1, pulled: 0 });
  });

  test('do not hint if they are older than the line before', async () => {
    await manifest({ L00: { updatedAt: at(-10) } });
    await store.sql`truncate catalog_internal.hints`;
    await manifest({ L00: { updatedAt: NEWER } });
    expect(await queued()).toEqual([]);
  });

  test('hint as often as their source has earned, at random, and never if over half of the lines are newer', async () => {
    const of = each(LIVE, { updatedAt: NEWER });
    await manifest(of);
    expect(await queued()).toEqual([]);
    await store.sql`insert into catalog_internal.hint_sources (source, tested, expected, unmoved, last_hint) values ('manifest.updated_at', 300, 290, 290, now())`;
    await store.sql`insert into catalog_internal.waiting_hints (sku, source, hinted_at, hazard)
      select 'X' || n, 'manifest.updated_at', now(), 0 from generate_series(1, 40) n`;
    await manifest(each(LIVE.slice(0, 40), { updatedAt: at(-10) }));
    const drawn = await queued();
    expect(drawn).toHaveLength(10);
    expect(drawn.some((name) => name > 'L20')).toBe(true);
    // Hints that are not read yet wait, too.
    await manifest(each(LIVE.slice(40), { updatedAt: at(-10) }));
    expect(await queued()).toEqual(drawn);
  });

  test('do not exceed the limit of queued hints', async () => {
    await store.sql`insert into catalog_internal.hints (sku, source, hinted_at) select 'L79', 'n' || n, now() from generate_series(1, 99998) n`;
    await manifest(each(LIVE.slice(0, 30), { updatedAt: at(-10) }));
    const [row] = await store.sql<
      [{ count: number }]
    >`select count(*)::int as count from catalog_internal.hints`;
    expect(row.count).toBe(100_000);
    expect(await hint('L50')).toBe(true);
    expect(await hint('L51')).toBe(false);
  });
});

describe('lines of live SKUs with another number of sizes', () => {
  test('than the mirror holds hint if they have changed since the refresh', async () => {
    await manifest({
      L00: { sizes: 2 },
      L01: { sizes: 2, updatedAt: NEWER },
      L02: { sizes: null },
      L03: { sizes: 2, updatedAt: at(-90) },
    });
    expect(await queued()).toEqual([
      'L00 manifest.sizes',
      'L01 manifest.sizes',
      'L01 manifest.updated_at',
      'L03 manifest.sizes',
    ]);
    await store.sql`truncate catalog_internal.hints`;
    // L00 has two sizes by now, and an unchanged line says nothing new.
    await holdTwo('L00', 'L04');
    await manifest({
      L00: { sizes: 2, updatedAt: NEWER },
      L01: { sizes: 2, updatedAt: NEWER },
      L04: { updatedAt: NEWER },
    });
    expect(await queued()).toEqual([
      'L00 manifest.updated_at',
      'L04 manifest.sizes',
      'L04 manifest.updated_at',
    ]);
  });

  test('do not hint if the snapshot is older than the refresh', async () => {
    const older = { token: { generatedAt: new Date(Date.now() - 90 * 60_000) } };
    await manifest({ L00: { sizes: 2 } }, older);
    expect(await queued()).toEqual([]);
    await manifest({ L01: { sizes: 2 } }, { token: { generatedAt: null } });
    expect(await queued()).toEqual([]);
  });

  test('hint first if the number has just changed', async () => {
    await holdTwo(...LIVE.slice(0, 30));
    const newer = each(LIVE.slice(0, 30), { updatedAt: NEWER });
    const other = each(LIVE.slice(60, 75), { sizes: 4 });
    await store.sql`insert into catalog_internal.waiting_hints (sku, source, hinted_at, hazard)
      select 'X' || n, 'manifest.sizes', now(), 0 from generate_series(1, 45) n`;
    await manifest({ ...newer, ...other });
    const drawn = (await queued()).filter((name) => name.endsWith('sizes'));
    expect(drawn).toHaveLength(5);
    expect(drawn.every((name) => name > 'L60')).toBe(true);
  });
});

test('lines of SKUs that are new, crossing or not live hint at nothing', async () => {
  const { sql } = store;
  await sql`update catalog.skus set price_source = 'snapshot' where sku = 'L00'`;
  await sql`update catalog.skus set in_manifest = false where sku = 'L01'`;
  await sql`update catalog.skus set state = 'pending' where sku = 'L02'`;
  const news = { updatedAt: NEWER, sizes: 3 };
  await manifest({ ...each(LIVE.slice(0, 3), news), L03: { ...news, priceSource: 'snapshot', hash: 'h' } });
  expect(await queued()).toEqual([]);
});

test('a SKU that a delta moves into the live cohort is due at once, hint or not', async () => {
  const { sql } = store;
  await sql`update catalog_internal.sync set snapshot_id = 't'`;
  await applyDelta(sql, { since: 't', toSnapshot: 't', changed: ['S0'], removed: [], nowLive: ['S0'] });
  expect(await dueIn('S0')).toBeLessThanOrEqual(0);
  await hint('S0');
  await drain();
  expect(await source()).toMatchObject({ hints: 1, pulled: 0 });
});

test('a lock on hints does not delay a manifest', async () => {
  for (const statement of ['lock table catalog_internal.hints', 'truncate catalog_internal.hint_sources'])
    await store.sql.begin(async (tx) => {
      await tx.unsafe(statement);
      const before = performance.now();
      await manifest({ L00: { updatedAt: at(-20 + Math.random()) } });
      expect(performance.now() - before).toBeLessThan(8000);
    });
  expect(await queued()).toEqual([]);
});

test('a lock on hints that is taken during a manifest does not delay it either', async () => {
  const { promise: merged, resolve } = Promise.withResolvers<void>();
  let locking: Promise<unknown> = Promise.resolve();
  const beforeMerge = async () =>
    await new Promise<void>((locked) => {
      locking = store.sql.begin(async (tx) => {
        await tx`lock table catalog_internal.hints`;
        locked();
        await merged;
      });
    });
  const before = performance.now();
  await manifest({ L00: { updatedAt: NEWER } }, { beforeMerge });
  expect(performance.now() - before).toBeLessThan(8000);
  resolve();
  await locking;
  expect(await queued()).toEqual([]);
});

test('sellers cannot use the names of the mirror’s own sources, and have fifty besides', async () => {
  for (const name of ['manifest.updated_at', ' manifest.sizes', 'manifest.', 'delta.now_live'])
    expect(await hint('L00', name)).toBe(false);
  for (const name of ['manifest', 'the manifest.sizes', 'deltas']) expect(await hint('L00', name)).toBe(true);
  for (let n = 3; n < 50; n += 1) await hint('L00', `source ${n}`);
  await manifest({ L01: { updatedAt: NEWER } });
  await hint('L02', 'one too many');
  await drain();
  expect(await source('manifest.updated_at')).toMatchObject({ hints: 1 });
  expect(await source('source 49')).toMatchObject({ hints: 1 });
  expect(await source('other')).toMatchObject({ hints: 1 });
});

test('SKUs out of scope get no hints and use up no places of others', async () => {
  const { sql } = store;
  await manifest({ L00: { updatedAt: NEWER }, L01: { updatedAt: NEWER } }, {});
  await hint('L02');
  await hint('L03');
  await drain();
  expect(await waiting()).toHaveLength(4);
  await onlyScope(sql, ['sku', 'L01'], ['sku', 'L03']);
  await pruneHints(sql);
  expect(await waiting()).toEqual(['L01 manifest.updated_at', 'L03 orders']);
  await hint('L04');
  await manifest({ L05: { updatedAt: at(-10) }, L06: { sizes: 2 }, L01: { updatedAt: at(-10) } });
  expect(await queued()).toEqual(['L01 manifest.updated_at', 'L04 orders']);
  await drain();
  expect(await waiting()).toEqual(['L01 manifest.updated_at', 'L03 orders']);
});
