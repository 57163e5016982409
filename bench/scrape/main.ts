import { paceReader } from '../../src/pace/view.ts';
import { readStatus } from '../../src/status/status.ts';
import { countCatalog, readCounts } from '../../src/store/catalog-counts.ts';
import { readStats } from '../../src/status/stats.ts';
import { inTurns, median } from '../frame/measure.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, sizes } from '../frame/table.ts';
import { loadMirror } from './load.ts';

/*
 * npm run bench:scrape [-- --skus 1000000 --rounds 10 --json FILE]
 * Database time of one scrape of /metrics: all its statements one after the other over one connection, without parallel
 * workers, so that the time that passes is the time Postgres works. Beside it, in the same rounds, the count of the catalog
 * that a daemon makes in the background, at most a twentieth of the time, and the least that any count costs; and all that `status`
 * and the status page read.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 10 });
const LIMITS = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };
/** Milliseconds of database time that a scrape may take, by catalog size. */
const reach = skus > 1_000_000 ? 100 : 50;
const of = `${skus.toLocaleString('en-US')} SKUs`;

const times = await withMirrorDatabase(async ({ sql }) => {
  await loadMirror(sql, skus);
  await sql`set max_parallel_workers_per_gather = 0`;
  const counts = () => readCounts(sql);
  const stats = () =>
    readStats(sql, { windowMs: LIMITS.windowMs, liveBudget: 5, paceOf: paceReader(LIMITS), counts });
  return await inTurns(
    {
      count: () => countCatalog(sql),
      scrape: stats,
      status: () => readStatus(sql, { stats, limits: LIMITS, bulkMaxSkus: 100 }),
      floor: () => sql`select count(*) from catalog.skus`,
    },
    rounds,
  );
});
const p50 = (name: string) => median(times.get(name) ?? []);
report(
  [
    { work: `scrape, ${of}`, ours: p50('scrape'), unit: 'ms', reach: { is: '≤', limit: reach } },
    { work: `what status reads, ${of}`, ours: p50('status'), unit: 'ms', reach: { is: '≤', limit: reach } },
    {
      work: `count in the background, ${of}`,
      ours: p50('count'),
      unit: 'ms',
      against: { what: 'select count(*) from catalog.skus', value: p50('floor') },
    },
  ],
  json,
);
