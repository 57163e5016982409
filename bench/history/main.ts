import { setTimeout } from 'node:timers/promises';
import type { Sql } from '../../src/store/connection/db.ts';
import { keepDailyPrices } from '../../src/store/history/daily.ts';
import { median, quantile, timed } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { loadRecords } from '../frame/records.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { seeded } from '../freshness/random.ts';
import { loadMirror } from '../scrape/load.ts';

/*
 * npm run bench:history [-- --skus 1000000 --rounds 20000 --turns 1 --pause 0 --json FILE] Questions to the history of a year, a hundred
 * changes a SKU: half of them are of one SKU in twenty, so each of those has a thousand in all chunks. Lookups of
 * single moments, in turns with a statement that reads nothing, and how fast changes are counted to their days.
 */

const { skus, rounds, turns, pause, json } = sizes({ skus: 1_000_000, rounds: 20_000, turns: 1, pause: 0 });
const SIZES = 14;
const CHANGES = skus * 100;
/** As a hundred million changes have. */
const CHUNKS = 20;
const CHUNK = 5_000_000;
const AT_ONCE = CHANGES / CHUNKS;
const YEAR = '365 days';
/** Of 366: as many changes as are sorted in memory. */
const DAYS_AT_ONCE = 15;
/** Pieces of changes that are counted to their days, for the rate. */
const PIECES = 100;

const random = seeded(3);
const skuOf = (n: number) => `SKU-${String(n).padStart(9, '0')}`;
const drawn = (of: number) => Math.floor(random() * of);
/** Live SKUs are every twentieth. */
const any = () => skuOf(1 + drawn(skus));
const live = () => skuOf(20 * (1 + drawn(Math.floor(skus / 20))));
const size = () => (35 + (1 + drawn(SIZES)) / 2).toFixed(1);
const moment = () => new Date(Date.now() - random() * 360 * 86_400_000);

/**
 * Builds the indexes of a table once all of it is there: kept in order while a hundred million rows come, they take
 * most of the time.
 */
async function indexedLast(sql: Sql, table: string, load: () => Promise<void>): Promise<void> {
  const indexes = await sql<{ drop: string; build: string }[]>`
    select case when conname is null then 'drop index ' || indexrelid::regclass
        else format('alter table %s drop constraint %I', indrelid::regclass, conname) end as drop,
      case when conname is null then replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ')
        else format('alter table %s add constraint %I %s', indrelid::regclass, conname, pg_get_constraintdef(c.oid)) end as build
    from pg_index left join pg_constraint c on conindid = indexrelid and contype = 'p' where indrelid = ${table}::regclass`;
  for (const { drop } of indexes) await sql.unsafe(drop);
  await load();
  await sql.unsafe(`set maintenance_work_mem = '2GB'`);
  for (const { build } of indexes) await sql.unsafe(build);
  await sql.unsafe(`vacuum analyze ${table}`);
}

/** Changes in order of time, each part of them in a chunk of its own, with the milestone of its time. */
async function loadHistory(sql: Sql): Promise<void> {
  for (let from = 0; from < CHANGES; from += AT_ONCE) {
    await sql`
      select setval('catalog_internal.change_positions', ((last_value - 1) / ${CHUNK}::int + 1) * ${CHUNK}::int) from catalog_internal.change_positions`;
    await sql`select catalog_internal.add_history_chunks(ahead => true)`;
    await sql`
      update catalog_internal.history_milestones set at = now() - ${YEAR}::interval * (1 - ${from}::float8 / ${CHANGES})
      where at > now() - interval '1 hour'`;
    await sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      select 'SKU-' || lpad((case when n % 2 = 0 then 20 * (1 + (n::bigint / 2 * 7368787) % ${Math.floor(skus / 20)}) else 1 + (n::bigint / 2 * 7368787) % ${skus} end)::text, 9, '0'),
        (35 + (1 + (hashint4(n) & 1023) % ${SIZES}) / 2.0)::numeric(4, 1)::text, 1000 + (hashint4(n) & 4095), 1000 + (hashint4(n + 1) & 4095),
        now() - ${YEAR}::interval * (1 - n::float8 / ${CHANGES})
      from generate_series(${from + 1}::int, ${Math.min(from + AT_ONCE, CHANGES)}::int) as n`;
    progress('changes', from + AT_ONCE);
  }
  await sql`update catalog.skus set first_priced_at = now() - interval '366 days' where first_priced_at is not null`;
  await sql.unsafe('vacuum analyze catalog.skus');
}

/**
 * Every change counted to its day, as in a mirror that has kept its history; many days at a time, as its own pieces
 * would take hours.
 */
async function loadDays(sql: Sql): Promise<void> {
  await sql`truncate catalog.daily_prices`;
  await sql`set work_mem = '1GB'`;
  for (let ago = 366; ago >= 0; ago -= DAYS_AT_ONCE) {
    await sql`
      insert into catalog.daily_prices (sku, size, day, open, low, median, close, changes, size_type_changed, first_position, first_change_at)
      select sku, size, day, min(old_price), min(new_price), min(new_price), max(new_price), count(*), false, min(id), min(observed_at)
      from (
        select *, (observed_at at time zone 'UTC')::date as day from catalog.price_history
        where observed_at >= (current_date - ${ago}::int)::timestamp at time zone 'UTC'
          and observed_at < (current_date - ${ago - DAYS_AT_ONCE}::int)::timestamp at time zone 'UTC'
      ) h group by sku, size, day`;
    progress('days to count', Math.max(0, ago - DAYS_AT_ONCE));
  }
  await sql`reset work_mem`;
  await sql`update catalog_internal.daily set position = (select max(id) from catalog.price_history)`;
}

/**
 * The mirror was loaded before its history, and is out of memory by now. A daemon reads and writes all of it all the
 * time.
 */
async function readMirror(sql: Sql): Promise<void> {
  for (const seqscan of ['on', 'off'])
    for (const table of ['catalog.skus', 'catalog.prices'])
      await sql.unsafe(
        `set enable_seqscan = ${seqscan}; select count(*) from ${table}; reset enable_seqscan`,
      );
}

const progress = (what: string, n: number) =>
  void process.stderr.write(`${new Date().toISOString()} ${what}: ${n.toLocaleString('en')}\n`);

type Works = Readonly<Record<string, () => Promise<unknown>>>;

const NOTHING = 'select 1';

const moments = (sql: Sql): Works => ({
  [NOTHING]: () => sql`select 1`,
  'price_at, any SKU': () => sql`select catalog.price_at(${any()}, ${size()}, ${moment()})`,
  'price_at, a live SKU': () => sql`select catalog.price_at(${live()}, ${size()}, ${moment()})`,
  'price_at, yesterday': () => sql`select catalog.price_at(${live()}, ${size()}, now() - interval '1 day')`,
});

/**
 * They read a hundred times as much, and are not in turns with those: what they leave behind is cleared up in the
 * next statement's time.
 */
const many = (sql: Sql): Works => ({
  [NOTHING]: () => sql`select 1`,
  'prices_at, all sizes of a live SKU': () => sql`select * from catalog.prices_at(${live()}, ${moment()})`,
  'daily_prices, thirty rows of a size': () =>
    sql`select * from catalog.daily_prices where sku = ${live()} and size = ${size()} order by day desc limit 30`,
});

/** What lookups took, and the 99th percentile of the statement that reads nothing: how busy the machine was. */
interface Turn {
  readonly rows: readonly Row[];
  readonly nothingMs: number;
}

async function measure(works: Works): Promise<Turn> {
  const times = new Map(Object.keys(works).map((name): [string, number[]] => [name, []]));
  for (let round = -100; round < rounds; round += 1)
    for (const [name, read] of Object.entries(works)) {
      const ms = await timed(read);
      if (round >= 0) times.get(name)?.push(ms);
    }
  const nothing = times.get(NOTHING) ?? [];
  const found = [...times]
    .filter(([name]) => name !== NOTHING)
    .flatMap(([name, ms]): Row[] => [
      {
        work: `${name}, p50`,
        ours: median(ms),
        unit: 'ms',
        against: { what: NOTHING, value: median(nothing) },
      },
      {
        work: `${name}, p99`,
        ours: quantile(ms, 0.99),
        unit: 'ms',
        ...(name.startsWith('price_at') ? { reach: { is: '≤', limit: 1 } } : {}),
      },
    ]);
  const nothingMs = quantile(nothing, 0.99);
  return {
    rows: [...found, { work: `${NOTHING} beside them, p99`, ours: nothingMs, unit: 'ms' }],
    nothingMs,
  };
}

/**
 * Of several turns, `pause` seconds apart, the one with the least other work beside it: loading takes half an hour, a
 * turn a few minutes.
 */
async function quietest(sql: Sql): Promise<readonly Row[]> {
  const done: Turn[] = [];
  while (done.length < turns) {
    if (done.length > 0) await setTimeout(pause * 1000);
    const few = await measure(moments(sql));
    const lots = await measure(many(sql));
    done.push({ rows: [...few.rows, ...lots.rows], nothingMs: few.nothingMs });
    progress(`turn ${done.length}: μs of ${NOTHING}, 99th percentile`, Math.round(few.nothingMs * 1000));
  }
  return done.toSorted((a, b) => a.nothingMs - b.nothingMs)[0]?.rows ?? [];
}

await withMirrorDatabase(
  async ({ sql }) => {
    await loadMirror(sql, skus);
    await loadRecords(sql, SIZES);
    await indexedLast(sql, 'catalog.price_history', () => loadHistory(sql));
    const ms = await timed(() => keepDailyPrices(sql, PIECES));
    const [counted] = await sql<[{ n: number }]>`
      select (select count(*)::float8 from catalog.price_history where id <= position) as n from catalog_internal.daily`;
    await indexedLast(sql, 'catalog.daily_prices', () => loadDays(sql));
    // What was loaded is written by now, and not while lookups are timed.
    await sql.unsafe('checkpoint');
    await readMirror(sql);
    const found = await quietest(sql);
    const [chunks] = await sql<[{ n: number }]>`
      select count(*)::int as n from pg_inherits where inhparent = 'catalog.price_history'::regclass`;
    report(
      [
        ...found,
        { work: `changes in ${chunks.n} chunks`, ours: CHANGES, unit: 'rows' },
        { work: 'changes counted to their days', ours: (counted.n * 1000) / ms, unit: 'changes/s' },
      ],
      json,
    );
  },
  { settings: { shared_buffers: '1GB', max_wal_size: '8GB' } },
);
