import { type CallInputOptions, readCallInputs } from '../../src/store/call/bulk-call.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { type Claim, type Quota, returnClaim, endWaits } from '../../src/store/ledger/due.ts';
import { median, timed } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';

/*
 * npm run bench:claim [-- --skus 1000000 --rounds 20 --json FILE] What a bulk call asks of the ledger, with that many
 * SKUs due and, in turns, with 10,000: what it is planned from (what is due, and what comes next), a claim of 100
 * SKUs and giving it back, and releasing what was held.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 20 });
const FEW = 10_000;
const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };
const INPUTS: CallInputOptions = {
  limit: 100,
  early: { usual: NOT_EARLY, stale: NOT_EARLY },
  candidates: { perBudget: 12, configuredBudget: 5, least: 16, most: 300, restMinutes: 1 },
};
const QUOTAS: readonly Quota[] = [
  { lane: 'urgent', live: false, count: 55, earlySeconds: 0 },
  { lane: 'new', live: false, count: 20, earlySeconds: 0 },
  { lane: 'metadata', live: false, count: 10, earlySeconds: 0 },
  { lane: 'sweep', live: false, count: 10, earlySeconds: 0 },
  { lane: 'live', live: true, count: 5, earlySeconds: 0 },
];
const HELD = 1000;

/** All of them due, in all lanes; one in twenty live. */
async function loadDue(sql: Sql, owed: number): Promise<void> {
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, generation)
    select 'SKU-' || lpad(n::text, 9, '0'), case when n % 20 = 0 then 2 else catalog_internal.lane_of(reason) end,
      case when n % 20 = 0 then 'live' else reason end, n % 20 = 0, now() - make_interval(secs => (n::bigint * 7919) % 86400), 1
    from generate_series(1, ${owed}) as n,
      lateral (select (array['changed', 'new', 'error', 'metadata', 'sweep'])[1 + n % 5] as reason) r`;
  await sql.unsafe('vacuum analyze catalog_internal.due');
}

/** One round: milliseconds of each thing asked. What it changes it puts back. */
async function ask(sql: Sql): Promise<Record<string, number>> {
  let claim: Claim | null = null;
  const inputs = await timed(() => readCallInputs(sql, INPUTS));
  const claimed = await timed(async () => (claim = await claimDue(sql, { quotas: QUOTAS }, 60_000)));
  const { skus: taken, ...id } = claim as unknown as Claim;
  if (taken.length !== 100) throw new Error(`claimed ${taken.length} SKUs`);
  const release = await timed(() =>
    returnClaim(
      sql,
      id,
      taken.map(({ sku }) => sku),
    ),
  );
  await sql`
    update catalog_internal.due set held_until = now() - interval '1 second'
    where sku in (select sku from catalog_internal.due where held_until is null order by sku desc limit ${HELD})`;
  const wake = await timed(async () => {
    if ((await endWaits(sql, HELD)) !== HELD) throw new Error('not all were woken');
  });
  return {
    'what a call is planned from': inputs,
    'claim of 100': claimed,
    'claim given back': release,
    'releasing 1,000 held': wake,
  };
}

/** Whether the statement reads indexes only: pages of the ledger that `readCallInputs` reads right after a vacuum. */
async function heapReads(sql: Sql): Promise<number> {
  await sql.unsafe('vacuum analyze catalog_internal.due');
  const reads = async () => {
    await sql`select pg_stat_force_next_flush()`;
    const [row] = await sql<[{ reads: number }]>`
      select (heap_blks_read + heap_blks_hit)::float8 as reads from pg_statio_user_tables where relname = 'due'`;
    return row.reads;
  };
  const before = await reads();
  await readCallInputs(sql, INPUTS);
  return (await reads()) - before;
}

/** Room for the larger ledger's indexes in memory, and no checkpoint in between, which would be its alone. */
const SERVER = { settings: { shared_buffers: '2GB', max_wal_size: '16GB', checkpoint_timeout: '1h' } };
await withMirrorDatabase(async (few) => {
  await withMirrorDatabase(async (many) => {
    await loadDue(few.sql, FEW);
    await loadDue(many.sql, skus);
    const times = new Map<string, { few: number[]; many: number[] }>();
    for (let round = 0; round <= rounds; round += 1)
      for (const [size, { sql }] of Object.entries({ few, many }))
        for (const [what, ms] of Object.entries(await ask(sql))) {
          const of = times.get(what) ?? { few: [], many: [] };
          if (round > 0) of[size as 'few' | 'many'].push(ms);
          times.set(what, of);
        }
    const rows = [...times].map(([what, of]): Row => ({
      work: `${what}, of ${skus.toLocaleString('en-US')}`,
      ours: median(of.many),
      unit: 'ms',
      against: { what: `of ${FEW.toLocaleString('en-US')}`, value: median(of.few) },
      reach: { is: '≤', limit: 2 },
    }));
    rows.push({
      work: 'pages of the ledger read to plan a call',
      ours: await heapReads(many.sql),
      unit: 'pages',
    });
    report(rows, json);
  }, SERVER);
}, SERVER);
