import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { storeFailedCall } from '../../src/store/call/call-lesson.ts';
import { BaselineSuperseded } from '../../src/store/catalog/baseline-merge.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { sqlState } from '../../src/store/connection/sql-errors.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { promoteMetadata, returnClaim, endWaits } from '../../src/store/ledger/due.ts';
import { unscheduleSnapshot, scheduleLive } from '../../src/store/live/order.ts';
import { QUIET_LINE } from '../../src/store/live/product-line-state.ts';
import { moveMembers, storeLineChanges } from '../../src/store/live/product-lines.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { forgetUnknown, readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { seeded } from '../hostile/random.ts';
import { eventually } from '../support/eventually.ts';
import { runs } from '../support/soak.ts';
import { baseline, line, standing } from './manifest.ts';
import { allDue, found, LEASE_MS, REFRESH, useStore } from './support.ts';

const store = useStore();

const NAMES = Array.from({ length: 400 }, (_, n) => `S${n}`);
type Draw = (below: number) => number;

function some(draw: Draw): string[] {
  const drawn = Array.from({ length: 100 + draw(300) }, () => NAMES[draw(NAMES.length)] as string);
  return [...new Set(drawn)];
}

function resultOf(sku: string, draw: Draw): SkuResult {
  const waitMs = 50;
  const kinds: readonly SkuResult[] = [
    found(sku, { 9: 90 + draw(3) }),
    found(sku, { 9: 90 + draw(3) }),
    { sku, kind: 'deferred', waitMs },
    { sku, kind: 'error', waitMs },
    { sku, kind: 'not_found' },
  ];
  return kinds[draw(kinds.length)] as SkuResult;
}

const FAILED = { because: 'timeout', pauseMs: 50, holdMs: 50, largestCall: 50, callSize: null };

/** Returns what the mirror does concurrently, each of it in several processes. */
function works(sql: Sql, draw: Draw): readonly (() => Promise<unknown>)[] {
  const claimed = async () => await claimDue(sql, { quotas: allDue(10 + draw(60)) }, LEASE_MS);
  const report = async () => {
    const [{ since }] = await sql<
      [{ since: string }]
    >`select snapshot_id as since from catalog_internal.sync`;
    const [changed, removed, nowLive] = [some(draw), draw(3) === 0 ? some(draw) : [], some(draw).slice(1)];
    await applyDelta(sql, { since, toSnapshot: `d${draw(1e9)}`, changed, removed, nowLive });
  };
  const answer = async () => {
    const claim = await claimed();
    const results = claim?.skus.map(({ sku }) => resultOf(sku, draw)) ?? [];
    if (claim !== null) await applyAnswer(sql, claim, results, REFRESH);
  };
  return [
    answer,
    answer,
    report,
    report,
    async () => {
      const claim = await claimed();
      if (claim !== null)
        await returnClaim(
          sql,
          claim,
          claim.skus.map(({ sku }) => sku),
        );
    },
    async () => {
      const claim = await claimed();
      if (claim !== null) await storeFailedCall(sql, { claim, ...FAILED, failures: draw(3) });
    },
    () => refreshSkus(sql, some(draw)),
    () => refreshAll(sql, draw(2) === 0 ? 'prices' : 'metadata'),
    () => readWatchlist(sql, { most: 200 + draw(200), everything: draw(2) === 0 }),
    () => forgetUnknown(sql, 200),
    () => endWaits(sql, 200),
    () => promoteMetadata(sql, 0, 200),
    () => unscheduleSnapshot(sql, { after: '', limit: 200, next: REFRESH }),
    async () => {
      const rows = await sql<{ sku: string; version: string }[]>`
        select sku, xmin::text as version from catalog_internal.due where sku = any(${some(draw)})`;
      await scheduleLive(
        sql,
        rows.map((row) => ({ ...row, alpha: 1, beta: 1, inMs: 10 })),
      );
    },
    () =>
      moveMembers(
        sql,
        some(draw).map((sku) => ({
          sku,
          generation: 1 + draw(5),
          inMinutes: draw(10),
          hazard: draw(2) === 0 ? null : 1,
        })),
        NO_TURN,
      ),
    () =>
      storeLineChanges(
        sql,
        [1, 2, 3, 4, 5].slice(draw(5)).map((id) => {
          const from = draw(3);
          return { id: String(id), brand: 'B', model: 'M', from, to: { ...QUIET_LINE, step: from + 1 } };
        }),
      ),
    () =>
      baseline(
        store.url,
        some(draw).map((sku) => line(sku, { hash: `h${draw(3)}` })),
        { rejected: some(draw).slice(2), token: { snapshotId: `m${draw(1e9)}` } },
      ).catch((error: unknown) => {
        if (!(error instanceof BaselineSuperseded)) throw error;
      }),
  ];
}

const NO_TURN = { suspected: 0, confirmed: 0, dismissed: 0, threshold: 6, early: 0, earlyAt: 0 };

/** Changes the watchlist as sellers do, one after the other: the locks among themselves are their own affair. */
async function sell(sql: Sql, draw: Draw): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(1)`;
    if (draw(6) === 0) await tx`truncate catalog.watchlist`;
    await tx`delete from catalog.watchlist where sku = any(${some(draw)})`;
    await tx`
      insert into catalog.watchlist (sku, weight) select unnest(${some(draw)}::text[]), ${1 + draw(9)}
      on conflict (sku) do update set weight = excluded.weight`;
    if (draw(2) === 0) await tx`update catalog.watchlist set weight = ${1 + draw(9)}`;
  });
}

test('nothing that locks SKUs and the ledger concurrently ends in a deadlock', async () => {
  const seed = Number(process.env['SEED'] ?? Math.trunc(Math.random() * 2 ** 31));
  await standing(store, ...NAMES.slice(0, 300).map((sku) => line(sku)));
  // Rows are in another order than their SKUs, as after some days.
  await store.sql.unsafe(`
    create table public.aside as table catalog_internal.due;
    delete from catalog_internal.due;
    insert into catalog_internal.due select * from public.aside order by md5(sku)`);
  const pool = connect(store.url, { max: 6, name: 'locks' });
  const errors: unknown[] = [];
  const repeat = async (nth: number, work: (draw: Draw) => Promise<unknown>) => {
    const draw = seeded(seed + nth);
    for (let turn = 0; turn < runs(40); turn += 1)
      await work(draw).catch((error: unknown) => errors.push(sqlState(error) ?? error));
  };
  const mirror = (draw: Draw) => {
    const all = works(pool, draw);
    return (all[draw(all.length)] as () => Promise<unknown>)();
  };
  await Promise.all(
    [1, 2, 3, 4, 5, 6].map((nth) => repeat(nth, nth < 3 ? (draw) => sell(pool, draw) : mirror)),
  );
  await pool.end();
  // A connection's counts become visible once it has ended; a transaction that was retried throws nothing.
  const counted = await eventually(async () => {
    const [row] = await store.sql<[{ deadlocks: number; others: number }]>`
      select deadlocks::int, (select count(*)::int from pg_stat_activity
        where datname = current_database() and application_name in ('locks', 'catalog-mirror manifest')) as others
      from pg_stat_database where datname = current_database()`;
    expect(row.others).toBe(0);
    return row;
  });
  expect({ errors, deadlocks: counted.deadlocks }, `SEED=${seed}`).toEqual({ errors: [], deadlocks: 0 });
});
