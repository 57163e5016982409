import { setTimeout as pause } from 'node:timers/promises';
import type { Sql } from '../../src/store/connection/db.ts';
import { besideFill, CALL_MS } from '../frame/filling.ts';
import { median, quantile } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { report } from '../frame/table.ts';
import { seeded } from '../freshness/random.ts';

/*
 * npm run bench:now [-- --skus 1000000 --rounds 80 --json FILE] How long CALL catalog.refresh_now takes for one SKU,
 * one in five of them live, while a daemon (a process of its own) fills a mirror of which so many SKUs are due, at
 * the pace of an account of 200 requests a minute, of which it has 60 %. The sandbox answers at once: at the partner
 * its answer's time comes on top. It is meant to take two calls at most, and the commit of an answer.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 80 });
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

const {
  result: { times, sent },
  due,
} = await besideFill({ skus }, async ({ sql, sandbox }) => {
  const times = await measure(sql);
  return { times, sent: sandbox.requests.filter(({ route }) => route === 'bulk').map(({ at }) => at) };
});
const gaps = sent
  .slice(-rounds)
  .map((at, i, all) => at - (all[i - 1] ?? at))
  .slice(1);
const beside = `beside ${due.toLocaleString('en-US')} due SKUs`;
const ms = times.map((time) => time.ms);
const calls = times.map((time) => time.calls);
const against = { what: 'time between two calls', value: CALL_MS };
report(
  [
    { work: `refresh_now of one SKU ${beside}, median`, ours: median(ms), unit: 'ms', against },
    { work: `the same, 95 of 100 within`, ours: quantile(ms, 0.95), unit: 'ms', against },
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
  ],
  json,
);
