import fc from 'fast-check';
import { expect, test } from 'vitest';
import { connect, type Sql, type Tx } from '../../src/store/connection/db.ts';
import { answerAsked, empty, found, mark, useStore } from './support.ts';

const store = useStore();

test('what is asked by sellers goes by the time of each statement, not by that of their transaction', async () => {
  const objects = await store.sql<{ name: string; definition: string }[]>`
    select c.oid::regclass::text as name, pg_get_viewdef(c.oid) as definition
    from pg_class c where relkind = 'v' and relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)
    union all
    select p.oid::regprocedure::text, pg_get_functiondef(p.oid)
    from pg_proc p where provolatile <> 'v' and pronamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)`;
  const timed =
    /\b(now\(|transaction_timestamp\(|current_timestamp|localtimestamp|current_date|current_time)/i;
  expect(objects.length).toBeGreaterThan(40);
  expect(objects.filter(({ definition }) => timed.test(definition)).map(({ name }) => name)).toEqual([]);
});

const SKUS = ['A', 'B', 'C', 'D'];
/** Everything that judges prices, without ages, which grow from one statement to the next. */
async function judged(sql: Sql | Tx): Promise<unknown> {
  return [
    await sql`
      select sku, state, owed, owed_reason, past_target, stale, fresh, doubt, actionable, size_actionable, round(p_right::numeric, 2) as p
      from catalog.sku_trust order by sku`,
    await sql`select sku, stale, actionable, round(p_right::numeric, 2) as p from catalog.current_prices order by sku`,
    await sql`select sku, actionable from catalog.lowest_prices('9') order by sku`,
    await sql`select sku from catalog.skus_past_target() order by sku`,
    await sql`select sku, new_price from catalog.movers() order by sku`,
    await sql`select due_skus, backing_off_until, catalog_state from catalog.sync_status`,
    await sql`select sku, catalog.explain(sku) -> 'trust' ->> 'actionable' as actionable from catalog.skus order by sku`,
  ].map((rows) => [...rows].map((row) => ({ ...row })));
}

const price = fc.integer({ min: 100, max: 130 });
const event = fc.oneof(
  fc.record({ do: fc.constant('report' as const), skus: fc.subarray(SKUS, { minLength: 1 }) }),
  fc.record({ do: fc.constant('answer' as const), price }),
  fc.record({ do: fc.constant('refuse' as const) }),
  // A day and more: beyond each target.
  fc.record({ do: fc.constant('age' as const), hours: fc.integer({ min: 1, max: 60 }) }),
);

async function happens(
  sql: Sql,
  what: typeof event extends fc.Arbitrary<infer E> ? E : never,
): Promise<void> {
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

test('whatever happens after a transaction has begun, each of its statements sees as much as one outside', async () => {
  const seller = connect(store.url, { max: 1 });
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 6 }), async (events) => {
        await empty(store.sql);
        for (const sku of SKUS)
          await store.sql`
            insert into catalog.skus (sku, in_manifest, price_source, sizes) values (${sku}, true, ${sku < 'C' ? 'snapshot' : 'live'}, 1)`;
        await mark(store.sql, SKUS, 'new');
        await answerAsked(store.sql, ...SKUS.map((sku) => found(sku, { 9: 110 })));
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
