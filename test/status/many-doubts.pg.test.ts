import { afterAll, beforeAll, expect, test } from 'vitest';
import { paceReader } from '../../src/pace/view.ts';
import { readFacts } from '../../src/status/facts.ts';
import { readStatus } from '../../src/status/status.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { countCatalog } from '../../src/store/status/counts-reader.ts';
import type { CatalogCounts } from '../../src/store/status/counts.ts';
import { useStore } from '../store/support.ts';
import { serverMajor } from '../support/db.ts';

/* Nearly all prices have moved as no market moves: every SKU is doubted and waits, and none is deferred. */

const store = useStore();
const SKUS = 20_000;
const LIMITS = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };

/** A single connection, because each one reports what it has read to the statistics by itself. */
let sql: Sql;
beforeAll(() => {
  sql = connect(store.url, { max: 1 });
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
});

async function doubtedMirror(): Promise<void> {
  await sql`
    insert into catalog.skus (sku, state, price_source, in_manifest, priced_at, asked_at, first_priced_at)
    select 'S' || n, 'priced', 'snapshot', true, now(), now(), now() from generate_series(1, ${SKUS}) n`;
  await sql`
    insert into catalog.prices (sku, size, price, changed_at)
    select 'S' || n, size::text, 4100, now() from generate_series(1, ${SKUS}) n, generate_series(40, 42) size`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, held_until, doubt, oddity, doubted_at)
    select 'S' || n, 1, 'doubted', n % 2 = 0, now(), now() + interval '5 minutes',
      case when n % 4 = 0 then 'mass-move' else 'implausible' end, case when n % 4 = 0 then null else 'jump' end,
      now() - make_interval(secs => n)
    from generate_series(1, ${SKUS}) n`;
  await sql`update catalog_internal.mass_move set since = now(), kind = 'implausible', answers = 500, implausible = 400`;
  await sql`update catalog_internal.sync set snapshot_id = 's', snapshot_generated_at = now(), manifest_applied_at = now()`;
  await sql`analyze catalog.skus, catalog.prices, catalog_internal.due`;
}

const read = (counts: CatalogCounts | null) =>
  readFacts(sql, {
    windowMs: LIMITS.windowMs,
    paceOf: paceReader(LIMITS),
    counts: () => Promise.resolve(counts),
  });

async function fetched(): Promise<number> {
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<[{ rows: number }]>`
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
    from pg_stat_user_tables where schemaname in ('catalog', 'catalog_internal')`;
  return row.rows;
}

test('facts and statistics read few rows however many SKUs are doubted, and count them all', async ({
  skip,
}) => {
  skip((await serverMajor()) < 15, 'statistics come with a delay before Postgres 15');
  await doubtedMirror();
  const counts = await countCatalog(sql);
  // The first executions are planned for their values, later ones use one generic plan.
  for (let reading = 0; reading < 7; reading += 1) {
    const before = await fetched();
    const found = await read(counts);
    const { stats } = await readStatus(sql, found, counts, {
      limits: LIMITS,
      bulkMaxSkus: 100,
      liveBudget: 5,
    });
    expect((await fetched()) - before).toBeLessThan(SKUS / 2);
    expect(found.facts.doubts).toMatchObject({ implausible: 15_000, massMoved: 5000, last: 'S1' });
    expect(stats.doubted).toEqual({ implausible: 15_000, 'mass-move': 5000 });
  }
});

test('without a recent count, the doubted SKUs that can be read at once are reported', async () => {
  await doubtedMirror();
  const { implausible, massMoved, massMove } = (await read(null)).facts.doubts;
  expect(implausible + massMoved).toBe(1000);
  expect(massMove).not.toBeNull();
});
