import { expect, test } from 'vitest';
import { ledger, knownSkus, mark, useStore } from '../store/support.ts';
import { useCalls } from './storing-calls.ts';

const store = useStore();
const calls = useCalls(store);
const skus = Array.from({ length: 40 }, (_, n) => `S${String(n).padStart(2, '0')}`);
const POISON = 'S17';

test.each([
  { turn: 'in its turn as a live one', source: 'live', due: { reason: 'live', lane: 2, live: true } },
  { turn: 'to be seen again', source: 'snapshot', due: { reason: 'again', lane: 5, live: false } },
] as const)(
  'a price whose newer answer is not stored is not actionable: asked $turn',
  async ({ source, due }) => {
    const { sql } = store;
    await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
    await knownSkus(sql, ['A', 'B'], { priceSource: source });
    await mark(sql, ['A', 'B'], 'new', due.live);
    await calls().untilIdle();
    // It hardly ever moves.
    await sql`delete from catalog_internal.live_rates`;
    await sql`insert into catalog_internal.live_rates (sku, alpha, beta, prior_part) values ('A', 1, 100000, 0)`;
    await sql`update catalog.skus set asked_at = asked_at - interval '5 minutes', priced_at = priced_at - interval '5 minutes'`;
    await sql`update catalog_internal.due set ${sql(due)}, due_at = now() where sku = 'A'`;
    const actionable = async () =>
      (await sql`select actionable from catalog.current_prices where sku = 'A'`)[0]?.[
        'actionable'
      ] as boolean;
    expect(await actionable()).toBe(true);
    await sql`alter table catalog.prices add constraint no_rise check (sku <> 'A' or price <= 100)`;
    try {
      calls().priceOf = () => 130;
      await calls().untilIdle();
      expect((await ledger(sql)).get('A')).toMatchObject({ failures: 1, claim: null });
      expect(await actionable()).toBe(false);
    } finally {
      await sql`alter table catalog.prices drop constraint no_rise`;
    }
    await sql`update catalog_internal.due set held_until = null where sku = 'A'`;
    await calls().untilIdle();
    expect(await sql`select price from catalog.prices where sku = 'A'`).toEqual([{ price: 130 }]);
    expect(await actionable()).toBe(true);
  },
);

test('a price is not actionable either if somebody has locked its row and its answer is not stored', async () => {
  const { sql } = store;
  await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
  await knownSkus(sql, ['A']);
  await mark(sql, ['A'], 'new');
  await calls().untilIdle();
  await sql`update catalog_internal.due set reason = 'again', due_at = now() where sku = 'A'`;
  await using _ = await calls().impatient();
  calls().priceOf = () => 130;
  await sql.begin(async (tx) => {
    await tx`select from catalog.prices where sku = 'A' for update`;
    await calls().untilIdle();
    expect(await sql`select from catalog.current_prices where sku = 'A' and actionable`).toHaveLength(0);
  });
});

test('a SKU in a spare slot whose answer is not stored is not actionable either, though it was not due', async () => {
  const { sql } = store;
  await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await calls().untilIdle();
  await sql`update catalog.skus set asked_at = asked_at - interval '1 hour', priced_at = priced_at - interval '1 hour'`;
  await sql`update catalog_internal.due set due_at = due_at - interval '1 hour'`;
  const actionable = () => sql`select from catalog.current_prices where sku = ${POISON} and actionable`;
  expect(await actionable()).toHaveLength(1);
  await sql.unsafe(
    `alter table catalog.prices add constraint no_rise check (sku <> '${POISON}' or price <= 100)`,
  );
  try {
    calls().priceOf = () => 130;
    await mark(sql, ['S00']);
    calls().asked = [];
    await calls().untilIdle();
    expect(calls().asked[0]).toHaveLength(skus.length);
    expect(await actionable()).toHaveLength(0);
  } finally {
    await sql`alter table catalog.prices drop constraint no_rise`;
  }
});

test('an answer that was not stored does not count as a report: missing prices are still doubted', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await mark(sql, ['A', 'B'], 'new');
  await calls().untilIdle();
  await sql`create table public.stock (sku text, size text, foreign key (sku, size) references catalog.prices)`;
  try {
    await sql`insert into public.stock values ('A', '9')`;
    calls().priceOf = (sku) => (sku === 'A' ? null : 100);
    await sql`update catalog_internal.due set due_at = now() where sku = 'A'`;
    await calls().untilIdle();
    expect((await ledger(sql)).get('A')).toMatchObject({ failures: 1, claim: null });
  } finally {
    await sql`drop table public.stock`;
  }
  await sql`update catalog_internal.due set held_until = null where sku = 'A'`;
  await calls().untilIdle();
  expect(await sql`select doubt, oddity, reason from catalog_internal.due where sku = 'A'`).toEqual([
    { doubt: 'implausible', oddity: 'no-prices', reason: 'doubted' },
  ]);
});

test.each([
  { what: 'metadata', table: 'products' },
  { what: 'state', table: 'skus' },
])(
  'an error of Postgres in rows of $what is reported as not stored, and its SKU waits',
  async ({ table }) => {
    const { sql } = store;
    await knownSkus(sql, skus);
    await mark(sql, skus, 'new');
    await sql.unsafe(`
    create function public.object() returns trigger language plpgsql as $$
      begin if new.sku = '${POISON}' then raise exception 'no' using errcode = '23514'; end if; return new; end $$;
    create trigger object before insert or update on catalog.${table} for each row execute function public.object()`);
    try {
      await calls().untilIdle();
      expect(calls().events.filter(({ event }) => event === 'bulk.failed')[0]).toMatchObject({
        because: 'not-stored',
      });
      expect((await ledger(sql)).get(POISON)).toMatchObject({ failures: 1 });
    } finally {
      await sql`drop function public.object() cascade`;
    }
  },
);
