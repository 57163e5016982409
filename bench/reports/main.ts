import { setTimeout as pause } from 'node:timers/promises';
import { type Change, follow } from '../../src/client/follow.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { besideFill, CALL_MS, type Fill, until } from '../frame/filling.ts';
import { median, quantile } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { report } from '../frame/table.ts';

/*
 * npm run bench:reports [-- --skus 1000000 --rounds 30 --json FILE] How long a move takes from the delta that reports
 * it to the commit of a follower, with the SKU's new price, while a daemon fills a mirror of which so many SKUs are
 * due (frame/filling.ts). Every ten seconds a delta reports twenty SKUs that have moved. The follower is a client of
 * catalog-mirror/follow that writes prices into a table of its own.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 30 });
const REPORTED = 20;
const DELTA_S = 10;
/** Two calls of the pace, and what Postgres and the follower may take. */
const REACH_MS = 2 * CALL_MS + 250;
const LONGEST_MS = 60_000;

/** SKUs with prices that deltas report: others each round. */
const priced = (sql: Sql, round: number) => sql<{ sku: string; size: string; price: number }[]>`
  select sku, (array_agg(size order by size))[1] as size, (array_agg(price order by size))[1] as price
  from catalog.prices join catalog.skus using (sku) where price_source = 'snapshot' and state = 'priced' and price is not null
  group by sku order by md5(sku || ${round}::int) limit ${REPORTED}`;

/** When a follower's transaction with the new price of a size was over, by SKU and size. */
async function followPrices(
  { url, sql }: Fill,
  signal: AbortSignal,
  seen: Map<string, number>,
): Promise<void> {
  await sql`create table public.offers (sku text, size text, price integer, primary key (sku, size))`;
  for await (const { changes } of follow({ url, position: 'now', signal })) {
    const rows = changes.filter(({ kind, new_price }) => kind === 'price' && new_price !== null);
    const newest = [...new Map(rows.map((row): [string, Change] => [keyOf(row), row])).values()];
    await sql`
      insert into public.offers
      select * from unnest(${newest.map((row) => row.sku)}::text[], ${newest.map((row) => row.size ?? '')}::text[], ${newest.map((row) => row.new_price ?? 0)}::int[])
      on conflict (sku, size) do update set price = excluded.price`;
    const at = Date.now();
    for (const row of newest) seen.set(keyOf(row), at);
  }
}

const keyOf = ({ sku, size, new_price }: Pick<Change, 'sku' | 'size' | 'new_price'>) =>
  `${sku} ${size} ${new_price}`;

/**
 * Moves some SKUs, waits for the delta that reports them, and then for all of their prices; milliseconds from the one
 * to the other.
 */
async function once(
  { sql, sandbox }: Fill,
  round: number,
  seen: ReadonlyMap<string, number>,
): Promise<number[]> {
  const moved = (await priced(sql, round)).map(({ sku, size, price }) => ({
    sku,
    size,
    new_price: Math.round(price * 1.05) + 1,
  }));
  for (const { sku, size, new_price } of moved) sandbox.world.setPrice(sku, size, new_price);
  sandbox.world.buildSnapshot();
  const built = Date.now();
  const reportedAt = () => sandbox.requests.findLast(({ route }) => route === 'delta')?.at ?? 0;
  await until(() => Promise.resolve(reportedAt() >= built));
  const from = reportedAt();
  await until(() =>
    Promise.resolve(Date.now() - from > LONGEST_MS || moved.every((row) => seen.has(keyOf(row)))),
  );
  return moved.map((row) => (seen.get(keyOf(row)) ?? Infinity) - from);
}

const { result: ms, due } = await besideFill(
  { skus, env: { DELTA_INTERVAL: `${DELTA_S}s` } },
  async (fill) => {
    await until(async () => (await priced(fill.sql, 0)).length === REPORTED);
    const seen = new Map<string, number>();
    const stop = new AbortController();
    const following = followPrices(fill, stop.signal, seen);
    const found: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      // Anywhere in the time between two calls.
      await pause((round * 137) % CALL_MS);
      found.push(...(await once(fill, round, seen)));
    }
    stop.abort();
    await following;
    return found;
  },
);
const against = { what: 'time between two calls', value: CALL_MS };
report(
  [
    {
      work: `reported until followed, beside ${due.toLocaleString('en-US')} due SKUs, median`,
      ours: median(ms),
      unit: 'ms',
      against,
    },
    {
      work: 'the same, 95 of 100 within',
      ours: quantile(ms, 0.95),
      unit: 'ms',
      reach: { is: '≤', limit: Math.round(REACH_MS) },
    },
    { work: 'moves that were reported', ours: ms.length, unit: 'moves' },
  ],
  json,
);
