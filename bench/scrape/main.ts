import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { paceReader } from '../../src/health.ts';
import { connect, migrateDatabase, type Sql } from '../../src/store/db.ts';
import { readStats } from '../../src/store/stats.ts';
import { loadMirror } from './load.ts';

/*
 * npm run bench:scrape [-- --skus 1000000 --runs 20]
 * Database time of one scrape of /metrics: all its statements one after the other over one connection, without parallel
 * workers, so that the time that passes is the time Postgres works; beside it a count of the catalog in the same rounds.
 */

const { values } = parseArgs({
  options: { skus: { type: 'string', default: '1000000' }, runs: { type: 'string', default: '20' } },
});
const skus = Number(values.skus);
const runs = Math.max(1, Number(values.runs));
const LIMITS = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };
const print = (line: string) => process.stdout.write(`${line}\n`);

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function quantile(times: readonly number[], q: number): string {
  const sorted = times.toSorted((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN).toFixed(1);
}

async function measure(sql: Sql): Promise<void> {
  await sql`set max_parallel_workers_per_gather = 0`;
  const works: Readonly<Record<string, () => Promise<unknown>>> = {
    'one scrape': () =>
      readStats(sql, { windowMs: LIMITS.windowMs, liveBudget: 5, paceOf: paceReader(LIMITS) }),
    'select count(*) from catalog.skus': () => sql`select count(*) from catalog.skus`,
  };
  const times = new Map(Object.keys(works).map((name) => [name, [] as number[]]));
  for (let run = 0; run <= runs; run += 1) {
    // The first round only warms the caches.
    for (const [name, work] of Object.entries(works)) {
      const ms = await timed(work);
      if (run > 0) times.get(name)?.push(ms);
    }
  }
  print(`${skus.toLocaleString('en-US')} SKUs, ${runs} rounds`.padEnd(40) + '    p50 ms    p95 ms');
  for (const [name, ms] of times)
    print(name.padEnd(40) + quantile(ms, 0.5).padStart(10) + quantile(ms, 0.95).padStart(10));
}

const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-bench-'));
await chmod(folder, 0o711);
try {
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres') });
  try {
    await migrateDatabase(server.url);
    const sql = connect(server.url, { max: 1 });
    print(
      `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, Node.js ${process.versions.node}`,
    );
    const loading = await timed(() => loadMirror(sql, skus));
    print(`loaded in ${(loading / 1000).toFixed(0)} s`);
    await measure(sql);
    await sql.end({ timeout: 5 });
  } finally {
    await server.stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
