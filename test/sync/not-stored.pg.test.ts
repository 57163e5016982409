import { expect, test } from 'vitest';
import { readNotStored } from '../../src/store/quarantine.ts';
import { maintain } from '../../src/sync/maintenance.ts';
import { failing, ledger, knownSkus, mark, useStore } from '../store/support.ts';
import { MINUTE, useCalls } from './storing-calls.ts';

const store = useStore();
const calls = useCalls(store);
const skus = Array.from({ length: 40 }, (_, n) => `S${String(n).padStart(2, '0')}`);
const POISON = 'S17';

async function priced(): Promise<string[]> {
  const rows = await store.sql<{ sku: string }[]>`select sku from catalog.prices order by sku`;
  return rows.map(({ sku }) => sku);
}

test('one SKU whose rows Postgres rejects waits alone, is named, and is asked for again later', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql.unsafe(`alter table catalog.prices add constraint no_poison check (sku <> '${POISON}')`);
  try {
    await calls().untilIdle();
    expect(await priced()).toEqual(skus.filter((sku) => sku !== POISON));
    expect((await ledger(sql)).get(POISON)).toMatchObject({ claim: null, failures: 1, lane: 4 });
    expect((await ledger(sql)).get(POISON)?.heldFor).toBeGreaterThan(0);
    // Calls are halved, and no SKU is asked for again once it is stored.
    expect(calls().asked.length).toBeLessThan(16);
    expect(await readNotStored(sql)).toEqual({
      skus: 1,
      last: POISON,
      sample: expect.stringContaining('SQLSTATE 23514, by no_poison of catalog.prices'),
      lacksPrivilege: false,
    });
    expect(calls().events.filter((event) => event.event === 'bulk.failed')[0]).toMatchObject({
      because: 'not-stored',
      skus: 40,
    });
    // Another call works, so the next failure is not taken for an outage.
    await mark(sql, ['S00']);
    await calls().untilIdle();
    await sql`update catalog_internal.due set held_until = null where sku = ${POISON}`;
    await calls().untilIdle();
    expect(calls().events.findLast((event) => event.event === 'bulk.failed')).toMatchObject({ sku: POISON });
  } finally {
    await sql`alter table catalog.prices drop constraint no_poison`;
  }
  await sql`update catalog_internal.due set held_until = null where sku = ${POISON}`;
  await calls().untilIdle();
  expect(await priced()).toEqual(skus);
  expect(await readNotStored(sql)).toMatchObject({ skus: 0 });
});

test('if no answer can be stored, no SKU is blamed and all calls pause, as in an outage', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql`alter table catalog.prices add constraint none check (false) not valid`;
  try {
    await calls().untilIdle();
    const [pause] = await sql`
      select failures, outcome, next_at > now() as pauses from catalog_internal.tasks where task = 'reprice'`;
    expect(pause).toMatchObject({ failures: 4, outcome: 'not-stored', pauses: true });
    expect(
      [...(await ledger(sql)).values()].every(({ failures, claim }) => failures === 0 && claim === null),
    ).toBe(true);
  } finally {
    await sql`alter table catalog.prices drop constraint none`;
  }
});

test('a trigger that cannot find its table blocks only the one SKU whose price has changed', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await calls().untilIdle();
  await sql.unsafe(`
    create table public.price_audit (sku text);
    create function public.audit() returns trigger language plpgsql as $$
      begin insert into price_audit values (new.sku); return new; end $$;
    create trigger audit after update on catalog.prices for each row
      when (new.price is distinct from old.price) execute function public.audit()`);
  try {
    calls().priceOf = (sku) => (sku === POISON ? 101 : 100);
    await mark(sql, skus);
    await calls().untilIdle();
    expect(await readNotStored(sql)).toEqual({
      skus: 1,
      last: POISON,
      sample: expect.stringContaining('SQLSTATE 42P01'),
      lacksPrivilege: false,
    });
    const owed = [...(await ledger(sql)).values()].filter(({ dueIn }) => dueIn <= 0);
    expect(owed).toMatchObject([{ sku: POISON, claim: null, failures: 1 }]);
  } finally {
    await sql.unsafe('drop function public.audit() cascade; drop table public.price_audit');
  }
});

test('a seller’s open transaction with a foreign key to one of the SKUs blocks none', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql`create table public.stock (sku text references catalog.skus)`;
  try {
    await using _ = await calls().impatient();
    await sql.begin(async (seller) => {
      await seller`insert into public.stock values (${POISON})`;
      await calls().untilIdle();
      expect(await priced()).toEqual(skus);
    });
  } finally {
    await sql`drop table public.stock`;
  }
});

test('a SKU that somebody has locked waits alone until it is free', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await using _ = await calls().impatient();
  await sql.begin(async (seller) => {
    await seller`select from catalog.skus where sku = ${POISON} for update`;
    await calls().untilIdle();
    expect(await priced()).toEqual(skus.filter((sku) => sku !== POISON));
    const { claim, heldFor, failures } = (await ledger(sql)).get(POISON) ?? {};
    expect({ claim, failures, isHeld: (heldFor ?? 0) > 0 }).toEqual({
      claim: null,
      failures: 0,
      isHeld: true,
    });
    expect(calls().asked.length).toBeLessThan(16);
  });
  await sql`update catalog_internal.due set held_until = null`;
  await calls().untilIdle();
  expect(await priced()).toEqual(skus);
  expect(calls().events.filter(({ event }) => event === 'bulk.failed')).toEqual([]);
});

test('an answer that fails because of a defect is retried in halves, and a single SKU waits', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  calls().priceOf = (sku) => {
    if (sku === POISON) throw new Error('a defect');
    return 100;
  };
  await calls().untilIdle();
  expect(await priced()).toEqual(skus.filter((sku) => sku !== POISON));
  expect((await ledger(sql)).get(POISON)).toMatchObject({ claim: null });
});

test('a trigger that fails every statement, even those without a row, counts as an outage', async () => {
  const { sql } = store;
  await knownSkus(sql, ['S00']);
  await mark(sql, ['S00'], 'new');
  await using _ = await failing(sql, 'update on catalog.skus', { sqlState: '42883' });
  await calls().untilIdle();
  expect((await ledger(sql)).get('S00')).toMatchObject({ claim: null, failures: 1 });
  expect(calls().asked).toHaveLength(1);
});

test('a watched SKU that Postgres does not accept does not block the others', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql`alter table catalog.skus add constraint no_typo check (sku <> 'typo')`;
  try {
    await sql`insert into catalog.watchlist (sku) values ('typo')`;
    await calls().untilIdle();
    expect(await priced()).toEqual(skus);
    expect(await maintain(calls().ctx, { windowMs: MINUTE, historyMs: 0, dailyMs: 0 })).toMatchObject({
      kind: 'failed',
      because: 'watchlist',
      problem: 'watchlist: SQLSTATE 23514, by no_typo of catalog.skus',
    });
  } finally {
    await sql`alter table catalog.skus drop constraint no_typo`;
  }
  await calls().untilIdle();
  expect(await priced()).toEqual([...skus, 'typo']);
});
