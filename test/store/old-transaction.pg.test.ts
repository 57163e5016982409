import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql, type Tx } from '../../src/store/connection/db.ts';
import { eventually } from '../support/eventually.ts';
import { answerAsked, empty, found, mark, useStore } from './support.ts';

const store = useStore();

/** Functions that use the time of the client's message, and why they may. */
const OF_A_MESSAGE = [
  // The daemon's own, whose messages are single statements; sellers' views pass another time to these two.
  'catalog_internal.is_reported(catalog_internal.due,timestamp with time zone)',
  'catalog_internal.is_waiting(catalog_internal.due,timestamp with time zone)',
  'catalog_internal.past_moves(text,timestamp with time zone)',
  'catalog_internal.past_moves_planned(text,timestamp with time zone)',
];

test('what sellers ask uses the present time, not that of their transaction or message', async () => {
  const objects = await store.sql<{ name: string; definition: string; writes: boolean }[]>`
    select c.oid::regclass::text as name, pg_get_viewdef(c.oid) as definition, false as writes
    from pg_class c where relkind = 'v' and relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)
    union all
    select replace(p.oid::regprocedure::text, ', ', ','), pg_get_functiondef(p.oid), provolatile = 'v'
    from pg_proc p where pronamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)`;
  const timed =
    /\b(now\(|transaction_timestamp\(|current_timestamp|localtimestamp|current_date|current_time)/i;
  const ofMessage = /\bstatement_timestamp\(/i;
  expect(objects.length).toBeGreaterThan(40);
  const names = (of: (typeof objects)[number][]) => of.map(({ name }) => name).toSorted();
  expect(names(objects.filter(({ definition, writes }) => !writes && timed.test(definition)))).toEqual([]);
  expect(names(objects.filter(({ definition }) => ofMessage.test(definition)))).toEqual(OF_A_MESSAGE);
});

const SKUS = ['A', 'B', 'C', 'D'];
/**
 * SQL that returns everything that judges prices as one jsonb: without ages, which grow from one statement to the
 * next, and with probabilities rounded to tenths, because they fall by a hundredth within seconds.
 */
const VERDICT = `jsonb_build_object(${[
  `select sku, state, owed, owed_reason, past_target, stale, fresh, doubt, actionable, size_actionable, round(p_right::numeric, 1) as p
    from catalog.sku_trust order by sku`,
  'select sku, stale, actionable, round(p_right::numeric, 1) as p from catalog.current_prices order by sku',
  "select sku, actionable from catalog.lowest_prices('9') order by sku",
  'select sku from catalog.skus_past_target() order by sku',
  'select sku, new_price from catalog.movers() order by sku',
  'select due_skus, backing_off_until, catalog_state from catalog.sync_status',
  "select sku, catalog.explain(sku) -> 'trust' ->> 'actionable' as actionable from catalog.skus order by sku",
]
  .map((query, i) => `'${i}', (select coalesce(jsonb_agg(q), '[]') from (${query}) q)`)
  .join(', ')})`;
async function judged(sql: Sql | Tx): Promise<unknown> {
  const [row] = await sql.unsafe<[{ verdict: unknown }]>(`select ${VERDICT} as verdict`);
  return row.verdict;
}

const price = fc.integer({ min: 100, max: 130 });
const event = fc.oneof(
  fc.record({ do: fc.constant('report' as const), skus: fc.subarray(SKUS, { minLength: 1 }) }),
  fc.record({ do: fc.constant('answer' as const), price }),
  fc.record({ do: fc.constant('refuse' as const) }),
  // Up to days: beyond each target.
  fc.record({ do: fc.constant('age' as const), hours: fc.integer({ min: 2, max: 60 }) }),
);

type Event = typeof event extends fc.Arbitrary<infer E> ? E : never;

async function happens(sql: Sql, what: Event): Promise<void> {
  if (what.do === 'report') await mark(sql, what.skus, 'changed');
  else if (what.do === 'answer') await answerAsked(sql, ...SKUS.map((sku) => found(sku, { 9: what.price })));
  else if (what.do === 'refuse')
    await sql`
      insert into catalog_internal.pace (ceiling, raised_at, backoff_until) values (100, now(), now() + interval '1 minute')
      on conflict (id) do update set backoff_until = excluded.backoff_until`;
  else
    await sql`
      update catalog.skus set priced_at = priced_at - make_interval(hours => ${what.hours}), asked_at = asked_at - make_interval(hours => ${what.hours})`;
}

/** Makes four priced SKUs, two of them live. */
async function begin(): Promise<void> {
  await empty(store.sql);
  for (const sku of SKUS)
    await store.sql`
      insert into catalog.skus (sku, in_manifest, price_source, sizes) values (${sku}, true, ${sku < 'C' ? 'snapshot' : 'live'}, 1)`;
  await mark(store.sql, SKUS, 'new');
  await answerAsked(store.sql, ...SKUS.map((sku) => found(sku, { 9: 110 })));
}

test('whatever happens after a transaction began, each of its statements sees as much as one outside', async () => {
  const seller = connect(store.url, { max: 1 });
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 6 }), async (events) => {
        await begin();
        await seller.begin(async (tx) => {
          await tx`select now()`;
          for (const each of events) {
            await happens(store.sql, each);
            expect(await judged(tx)).toEqual(await judged(store.sql));
          }
        });
      }),
      { numRuns: 20 },
    );
  } finally {
    await seller.end();
  }
});

/** The advisory locks of the steps of a message are `STEP` plus the step's number. */
const STEP = 4_200_000;
const wait = (step: number) => `pg_advisory_xact_lock(${STEP + step})`;
const see = (step: number) => `insert into seller.seen select ${step}, ${VERDICT}`;

/** One message of a client, each of whose steps waits until it is released. */
const FORMS: Readonly<Record<string, (steps: readonly number[]) => string>> = {
  'a query of several statements': (steps) =>
    steps.map((step) => `select ${wait(step)}; ${see(step)}`).join(';'),
  'a DO block': (steps) => `do $$ begin ${inPlpgsql(steps, '')} end $$`,
  'a DO block that commits': (steps) => `do $$ begin ${inPlpgsql(steps, 'commit;')} end $$`,
  'a function': (steps) =>
    `create or replace function seller.reprice() returns void language plpgsql as $$ begin ${inPlpgsql(steps, '')} end $$;
     select seller.reprice()`,
};
const inPlpgsql = (steps: readonly number[], after: string) =>
  steps.map((step) => `perform ${wait(step)}; ${see(step)}; ${after}`).join('\n');

/**
 * Runs one message of a seller's, with an event before each step, and expects each step to see what another
 * session sees.
 */
async function inOneMessage(seller: Sql, form: string, events: readonly Event[]): Promise<void> {
  const steps = events.map((_, step) => step);
  const gate = await store.sql.reserve();
  try {
    for (const step of steps) await gate`select pg_advisory_lock(${STEP + step})`;
    const message = seller.unsafe(FORMS[form]?.(steps) ?? '').simple();
    const whole = message.then(
      () => null,
      (error: unknown) => error,
    );
    const outside: unknown[] = [];
    for (const [step, event] of events.entries()) {
      await eventually(async () => {
        const [{ waits }] = await store.sql<[{ waits: boolean }]>`
          select exists (select from pg_locks where locktype = 'advisory' and objid = ${STEP + step} and not granted) as waits`;
        expect(waits).toBe(true);
      });
      await happens(store.sql, event);
      outside.push(await judged(store.sql));
      await gate`select pg_advisory_unlock(${STEP + step})`;
    }
    expect(await whole).toBeNull();
    const seen = await seller<{ verdict: unknown }[]>`select verdict from seller.seen order by step`;
    expect(seen.map(({ verdict }) => verdict)).toEqual(outside);
  } finally {
    await gate`select pg_advisory_unlock_all()`;
    gate.release();
  }
}

describe('within one message of a client', () => {
  let seller: Sql;
  beforeAll(async () => {
    seller = connect(store.url, { max: 1 });
    await seller
      .unsafe('create schema seller; create table seller.seen (step integer, verdict jsonb)')
      .simple();
  });
  afterAll(async () => {
    await seller.end();
  });

  test.each(Object.keys(FORMS))('%s sees as much as a statement of its own', async (form) => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 4 }), async (events) => {
        await begin();
        await seller`truncate seller.seen`;
        await inOneMessage(seller, form, events);
      }),
      { numRuns: 5, examples: [[[{ do: 'report', skus: ['A', 'C'] }]]] },
    );
  });

  test('prices get older from one statement to the next', async () => {
    await begin();
    const age = "select extract(epoch from price_age)::float8 as age from catalog.sku_trust where sku = 'A'";
    const [first, second] = (await seller.unsafe(`${age}; ${age}`).simple()) as unknown as {
      age: number;
    }[][];
    expect(second?.[0]?.age).toBeGreaterThan(first?.[0]?.age ?? Infinity);
  });
});

test('all rows of a query are judged at one moment, even by parallel workers', async () => {
  await begin();
  await store.sql`
    insert into catalog.skus (sku, state, in_manifest, price_source, sizes, priced_at, asked_at)
    select 'N' || n, 'priced', true, 'snapshot', 1, now(), now() from generate_series(1, 5000) n`;
  // Otherwise autovacuum decides by chance whether the planner considers workers worthwhile.
  await store.sql`analyze catalog.skus`;
  await store.sql.begin(async (tx) => {
    await tx.unsafe(
      'set local parallel_setup_cost = 0; set local parallel_tuple_cost = 0; set local min_parallel_table_scan_size = 0',
    );
    const moments =
      'select count(distinct priced_at + price_age)::int as moments, count(*)::int as skus from catalog.sku_trust';
    const plan = await tx.unsafe(`explain ${moments}`);
    expect(plan.map((row) => String(row['QUERY PLAN'])).join('\n')).toMatch(/Gather/);
    expect([...(await tx.unsafe(moments))]).toEqual([{ moments: 1, skus: 5004 }]);
  });
});

test('parallel plans can write their results: tables and materialized views of all that is shown', async () => {
  await begin();
  await store.sql`
    insert into catalog.skus (sku, state, in_manifest, price_source, sizes, priced_at, asked_at)
    select 'N' || n, 'priced', true, 'snapshot', 1, now(), now() from generate_series(1, 5000) n`;
  await store.sql`analyze catalog.skus`;
  await store.sql`insert into catalog_internal.pace (ceiling, raised_at) values (20, now()) on conflict (id) do update set ceiling = 20`;
  await store.sql.begin(async (tx) => {
    await tx.unsafe(
      'set local parallel_setup_cost = 0; set local parallel_tuple_cost = 0; set local min_parallel_table_scan_size = 0',
    );
    await tx`create temporary table written on commit drop as select * from catalog.sync_status`;
    await tx`create materialized view public.shown as select sku, next_look_at from catalog.sku_trust`;
    await tx`refresh materialized view public.shown`;
    expect([...(await tx`select requests_per_minute is not null as known from written`)]).toEqual([
      { known: true },
    ]);
    await tx`drop materialized view public.shown`;
  });
});

test.each([
  ['itself', "select * from catalog.sku_trust where sku = 'A'"],
  ['within a CTE', "with t as (select * from catalog.sku_trust) select * from t where sku = 'A'"],
])('the row of one SKU is read by its keys alone: %s', async (_, query) => {
  const plan = await store.sql.begin(async (tx) => {
    // The tables hold a few rows, which autovacuum may or may not have counted: leave only indexes to choose from.
    await tx`set local enable_seqscan = off`;
    await tx`set local enable_bitmapscan = off`;
    return await tx.unsafe(`explain ${query}`);
  });
  const lines = plan.map((row) => row['QUERY PLAN'] as string).filter((text) => text.includes('Scan'));
  const cheap = /Index Scan using (skus|due|live_rates)_pkey|Function Scan on trust_now|Subquery Scan on q /;
  expect(lines.filter((text) => !cheap.test(text))).toEqual([]);
  // The last one is of one row and reads no table: what a live SKU waits for.
  expect(lines).toHaveLength(5);
});
