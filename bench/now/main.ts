import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/db.ts';
import { seeded } from '../freshness/random.ts';
import { median, quantile } from '../frame/measure.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row, sizes } from '../frame/table.ts';

/*
 * npm run bench:now [-- --skus 1000000 --rounds 80 --json FILE]
 * How long CALL catalog.refresh_now takes for one SKU, one in five of them live, while a daemon (a process of its own) fills a mirror of which
 * so many SKUs are due, at the pace of an account of 200 requests a minute, of which it has 60 %. The sandbox answers at once: at the partner its
 * answer's time comes on top. It is meant to take two calls at most, and the commit of an answer.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 80 });
/** So many of them the sandbox has: more than calls can carry meanwhile. To the others it answers that they are not found. */
const KNOWN = 30_000;
const LIVE_SHARE = 0.05;
/** PARTNER_RATE_LIMIT 200 with PARTNER_RATE_SHARE 0.6, less one request and half a second of guard. */
const CALL_MS = 60_000 / 118;
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await pause(250);
}

/** A baseline is there; then all that the sandbox does not have becomes due, too, after what it has. */
async function dueAll(sql: Sql): Promise<void> {
  await until(async () => (await sql`select from catalog_internal.due limit 1`).length > 0);
  const names = sql`select format('X%s', n) as sku from generate_series(1, ${skus - KNOWN}::int) n`;
  await sql`insert into catalog.skus (sku, in_manifest, price_source) select sku, true, 'snapshot' from (${names}) n`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, due_at, generation)
    select sku, catalog_internal.lane_of('new'), 'new', now(), 1 from (${names}) n`;
  await sql`analyze catalog.skus, catalog_internal.due`;
}

interface Measured {
  readonly ms: number;
  /** Bulk calls that left from the call on, up to the one that had the SKU. */
  readonly calls: number;
}

async function measure(sql: Sql): Promise<Measured[]> {
  const random = seeded(7);
  const times: Measured[] = [];
  const pick = async (source: string) =>
    (
      await sql<{ sku: string }[]>`
      select sku from catalog.skus where price_source = ${source} and sku not like 'X%' order by md5(sku || ${times.length}::int) limit 1`
    )[0]?.sku ?? '';
  for (let round = 0; round < rounds; round += 1) {
    const sku = await pick(round % 5 === 0 ? 'live' : 'snapshot');
    await pause(random() * 2 * CALL_MS);
    const [{ at }] = await sql<[{ at: string }]>`select clock_timestamp()::text as at`;
    const from = performance.now();
    await sql`call catalog.refresh_now(${[sku]}, '1 minute')`;
    const ms = performance.now() - from;
    const [{ calls }] = await sql<[{ calls: number }]>`
      select count(*)::int as calls from catalog_internal.pace_sends
      where lane = 'reprice' and sent_at > ${at}::text::timestamptz and sent_at <= (select asked_at from catalog.skus where sku = ${sku})`;
    times.push({ ms, calls: Math.max(1, calls) });
  }
  return times;
}

const rows = await withMirrorDatabase(
  async ({ url, sql }): Promise<Row[]> => {
    const sandbox = await startSandbox({ skus: KNOWN, liveShare: LIVE_SHARE, rateLimit: 200 });
    await sql`insert into catalog_internal.pace (ceiling, raised_at) values (1000, now())`;
    const daemon = spawn(process.execPath, [MAIN, 'run'], {
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: url,
        PARTNER_BASE_URL: sandbox.url,
        PARTNER_API_KEY: sandbox.apiKey,
        PARTNER_SECRET: sandbox.secret,
        HTTP_PORT: '0',
        LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    try {
      await dueAll(sql);
      const times = await measure(sql);
      const sent = sandbox.requests.filter(({ route }) => route === 'bulk').map(({ at }) => at);
      const [{ due }] = await sql<[{ due: number }]>`
        select count(*)::int as due from catalog_internal.due where due_at <= now()`;
      if (due < skus * 0.9) throw new Error(`only ${due} SKUs are due at the end`);
      const gaps = sent
        .slice(-rounds)
        .map((at, i, all) => at - (all[i - 1] ?? at))
        .slice(1);
      const beside = `beside ${due.toLocaleString('en-US')} due SKUs`;
      const ms = times.map((time) => time.ms);
      const calls = times.map((time) => time.calls);
      const against = { what: 'time between two calls', value: CALL_MS };
      return [
        { work: `refresh_now of one SKU ${beside}, median`, ours: median(ms), unit: 'ms', against },
        {
          work: `the same, 95 of 100 within`,
          ours: quantile(ms, 0.95),
          unit: 'ms',
          against,
        },
        {
          work: 'calls until the one that has it, 95 of 100 within',
          ours: quantile(calls, 0.95),
          unit: 'calls',
          reach: { is: '≤', limit: 2 },
        },
        {
          work: 'time between two calls as the sandbox saw them, median',
          ours: median(gaps),
          unit: 'ms',
          against,
        },
      ];
    } finally {
      daemon.kill('SIGTERM');
      await once(daemon, 'exit');
      await sandbox.close();
    }
  },
  { max: 2 },
);
report(rows, json);
