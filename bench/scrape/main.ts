import { paceReader } from '../../src/pace/view.ts';
import { readFacts } from '../../src/status/facts.ts';
import { readStatus } from '../../src/status/status.ts';
import { countCatalog, readCounts } from '../../src/store/status/counts-reader.ts';
import { inTurns, median } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report } from '../frame/table.ts';
import { doubtSome, loadMirror } from './load.ts';

/*
 * npm run bench:scrape [-- --skus 1000000 --rounds 10 --json FILE] Database time of one scrape of /metrics: all its
 * statements one after the other over one connection, without parallel workers, so that the time that passes is the
 * time Postgres works. Beside it, in the same rounds, the count of the catalog that a daemon makes in the background,
 * at most a twentieth of the time, and the least that any count costs; and what `/readyz` reads. `status` and the
 * status page read what a scrape does. One SKU in ten is doubted, as in a fault of the partner's.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 10 });
const LIMITS = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };
/** Milliseconds of database time that a scrape may take, by catalog size. */
const reach = skus > 1_000_000 ? 100 : 50;
const of = `${skus.toLocaleString('en-US')} SKUs`;

const times = await withMirrorDatabase(async ({ sql }) => {
  await loadMirror(sql, skus);
  await doubtSome(sql);
  await sql`set max_parallel_workers_per_gather = 0`;
  const paceOf = paceReader(LIMITS);
  const facts = () => readFacts(sql, { windowMs: LIMITS.windowMs, paceOf, counts: () => readCounts(sql) });
  const status = async () => {
    const counts = await readCounts(sql);
    await readStatus(sql, await facts(), counts, { limits: LIMITS, bulkMaxSkus: 100, liveBudget: 5 });
  };
  return await inTurns(
    {
      count: () => countCatalog(sql),
      ready: facts,
      scrape: status,
      floor: () => sql`select count(*) from catalog.skus`,
    },
    rounds,
  );
});
const p50 = (name: string) => median(times.get(name) ?? []);
report(
  [
    { work: `scrape, ${of}`, ours: p50('scrape'), unit: 'ms', reach: { is: '≤', limit: reach } },
    { work: `what readyz reads, ${of}`, ours: p50('ready'), unit: 'ms', reach: { is: '≤', limit: reach } },
    {
      work: `count in the background, ${of}`,
      ours: p50('count'),
      unit: 'ms',
      against: { what: 'select count(*) from catalog.skus', value: p50('floor') },
    },
  ],
  json,
);
