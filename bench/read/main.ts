import type { Sql } from '../../src/store/connection/db.ts';
import { scattered } from '../apply/answer.ts';
import { median, quantile, timed } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { loadRecords } from '../frame/records.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { loadMirror } from '../scrape/load.ts';
import { besideWriter } from './beside.ts';

/*
 * npm run bench:read [-- --skus 1000000 --rounds 200 --json FILE] What sellers read, from a mirror of that many SKUs
 * with 14 sizes each: alone, while another process applies as many answers as the partner gives an account at most,
 * and while it applies them as fast as it can. Beside it, in the same turns, a statement that reads nothing: what the
 * machine and the wire take. Single SKUs are looked up in runs of their own, for as long as it takes to apply some
 * dozens of answers: behind a list of thousands of rows they would wait for this client's own memory.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 200 });
const SIZES = 14;
const HISTORY = 2_000_000;
/** The account's limit (partner rule 8.rate): more bulk calls than that no daemon is ever answered. */
const ANSWERS_A_MINUTE = 200;
const names = scattered(skus);
const some = (count: number) => Array.from({ length: count }, () => names.next().value);

/** So many rounds of looking up single SKUs for each round of lists. */
const LOOKUPS_A_ROUND = 100;

/** The work, and in how many rounds it is done once. */
type Works = Readonly<Record<string, { readonly every: number; readonly read: () => Promise<unknown> }>>;

function lookupsOf(sql: Sql): Works {
  return {
    nothing: { every: 1, read: () => sql`select 1` },
    'one SKU, with product and freshness': {
      every: 1,
      read: () => sql`select * from catalog.current_prices where sku = ${some(1)[0] ?? ''}`,
    },
    'one SKU, how far to trust it': {
      every: 1,
      read: () => sql`select * from catalog.sku_trust where sku = ${some(1)[0] ?? ''}`,
    },
  };
}

function listsOf(sql: Sql): Works {
  return {
    '500 SKUs': {
      every: 5,
      read: () => sql`select * from catalog.current_prices where sku = any(${some(500)})`,
    },
    // Of which a statement is to begin with the seller's own rows, not with the mirror.
    'prices of 50 offers of the seller': {
      every: 5,
      read: () => sql`
        select o.sku, c.price from unnest(${some(50)}::text[]) as o(sku) join catalog.current_prices c on c.sku = o.sku and c.size = '42.0'
        where c.actionable`,
    },
    'the last 100 changes': {
      every: 1,
      read: () => sql`select * from catalog.price_history order by id desc limit 100`,
    },
    'the moves of the last hour': {
      every: 40,
      read: () => sql`
        select sku, size, old_price, new_price, observed_at from catalog.price_history
        where observed_at > now() - interval '1 hour' order by id desc`,
    },
    'the movers of the last hour': { every: 40, read: () => sql`select * from catalog.movers()` },
    'lowest prices of a size of a model': {
      every: 40,
      read: () => sql`select * from catalog.lowest_prices('42.0', 'Brand', 'Model 77')`,
    },
    'a page of the oldest': {
      every: 40,
      read: () => sql`
        select * from (select sku from catalog.skus where state = 'priced' order by priced_at, sku limit 100) page
        join catalog.sku_trust t using (sku) order by t.priced_at, sku`,
    },
    'a page of those past their target': {
      every: 40,
      read: () => sql`select * from catalog.skus_past_target(100)`,
    },
    'all stale SKUs': { every: 100, read: () => sql`select sku from catalog.sku_trust where stale` },
    'all SKUs by what is doubted': {
      every: 100,
      read: () => sql`select doubt, count(*) from catalog.sku_trust group by doubt`,
    },
    [BY_DOUBT]: {
      every: 100,
      read: () => sql`
        select count(*) filter (where t.doubt is null and p.price is not null) from catalog.sku_trust t join catalog.prices p on p.sku = t.sku`,
    },
    [ACTIONABLE]: {
      every: 100,
      read: () => sql`select count(*) filter (where actionable) from catalog.current_prices`,
    },
    'all stale SKUs, through their prices': {
      every: 100,
      read: () => sql`select distinct sku from catalog.current_prices where stale`,
    },
  };
}

/** Every price, with its probability and, as before there was one, without. */
const BY_DOUBT = 'all prices without a doubt';
const ACTIONABLE = 'all actionable prices';

type Times = ReadonlyMap<string, readonly number[]>;

/** Milliseconds of each, by name. */
async function measure(sql: Sql): Promise<Times> {
  const lookups = await inRounds(lookupsOf(sql), rounds * LOOKUPS_A_ROUND);
  return new Map([...lookups, ...(await inRounds(listsOf(sql), rounds))]);
}

async function inRounds(works: Works, most: number): Promise<Times> {
  const times = new Map(Object.keys(works).map((name): [string, number[]] => [name, []]));
  for (let round = 0; round <= most; round += 1)
    for (const [name, { every, read }] of Object.entries(works)) {
      if (round % every !== 0) continue;
      const ms = await timed(read);
      if (round > 0) times.get(name)?.push(ms);
    }
  return times;
}

/** Moves as a month leaves them: the last hour holds a seven-hundredth of them. */
async function loadHistory(sql: Sql): Promise<void> {
  await sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    select 'SKU-' || lpad((1 + (n::bigint * 7368787) % ${skus})::text, 9, '0'), '42', n, n + 1,
      now() - interval '30 days' * (1 - n / ${HISTORY}::float8)
    from generate_series(1, ${HISTORY}) as n`;
  await sql.unsafe('vacuum analyze catalog.price_history');
}

const QUIET = 'quiet';
const FULL = 'at the full rate of an account';
const UNPACED = 'beside answers as fast as they go';

await withMirrorDatabase(
  async ({ sql, url }) => {
    await loadMirror(sql, skus);
    await loadRecords(sql, SIZES);
    await loadHistory(sql);
    const quiet = await measure(sql);
    const full = await besideWriter({ url, skus, aMinute: ANSWERS_A_MINUTE }, () => measure(sql));
    const unpaced = await besideWriter({ url, skus, aMinute: 0 }, () => measure(sql));
    const applied = (skusASecond: number, when: string): Row => ({
      work: `answers applied meanwhile, ${when}`,
      ours: skusASecond,
      unit: 'SKUs/s',
    });
    report(
      [
        ...rowsOf(QUIET, quiet),
        ...scanRatio(quiet),
        ...rowsOf(FULL, full.result),
        applied(full.skusASecond, FULL),
        ...rowsOf(UNPACED, unpaced.result),
        applied(unpaced.skusASecond, UNPACED),
      ],
      json,
    );
  },
  { settings: { shared_buffers: '1GB', max_wal_size: '8GB' } },
);

/** What the probability costs a reader of all prices. */
function scanRatio(times: Times): Row[] {
  const [ours, without] = [ACTIONABLE, BY_DOUBT].map((name) => median(times.get(name) ?? []));
  if (ours === undefined || without === undefined || !(without > 0)) return [];
  return [
    {
      work: `${ACTIONABLE}, ${QUIET}, p50`,
      ours,
      unit: 'ms',
      against: { what: BY_DOUBT, value: without },
      reach: { is: '≤', limit: 1.5 },
    },
  ];
}

function rowsOf(when: string, times: Times): Row[] {
  const nothing = times.get('nothing') ?? [];
  return (
    [...times]
      // In few rounds what is done once in many is not done at all.
      .filter(([name, ms]) => name !== 'nothing' && ms.length > 0)
      .flatMap(([name, ms]): Row[] => {
        const one = name.startsWith('one SKU') && when === FULL;
        return [
          {
            work: `${name}, ${when}, p50`,
            ours: median(ms),
            unit: 'ms',
            against: { what: 'select 1', value: median(nothing) },
          },
          {
            work: `${name}, ${when}, p99`,
            ours: quantile(ms, 0.99),
            unit: 'ms',
            ...(one ? { reach: { is: '≤', limit: 1 } } : {}),
          },
          ...(name.startsWith('one SKU')
            ? [{ work: `select 1, ${when}, p99`, ours: quantile(nothing, 0.99), unit: 'ms' }]
            : []),
        ];
      })
  );
}
