import {
  array,
  assert,
  asyncProperty,
  boolean,
  constantFrom,
  integer,
  oneof,
  option,
  record,
  tuple,
} from 'fast-check';
import { expect, test } from 'vitest';
import { keepDailyPrices } from '../../src/store/history/daily.ts';
import { runs } from '../support/soak.ts';
import { counting, DAY_US, daysOf, priceAt, readDays, readSeries, type Series } from './history-oracle.ts';
import { empty, useStore } from './support.ts';

const store = useStore();

const SKUS = ['A', 'B', 'C'];
const SIZES = ['9', '10'];
const HOUR_US = 3_600_000_000n;
/** How much later a change is observed than the one before; null: at the next midnight (UTC). */
const LATER = [0n, 1n, 60_000_000n, HOUR_US, 7n * HOUR_US, 23n * HOUR_US, 50n * HOUR_US, null];

const change = record({
  sku: constantFrom(...SKUS),
  size: constantFrom(...SIZES),
  price: option(integer({ min: 50, max: 60 }), { freq: 4 }),
  later: constantFrom(...LATER),
  /**
   * How much earlier it was observed, because its answer was requested before others that committed first, or
   * because a clock was behind.
   */
  earlier: constantFrom(0n, 0n, 0n, 0n, 1n, HOUR_US, 30n * HOUR_US),
  corrected: constantFrom(false, false, false, true),
});
const step = oneof(
  {
    weight: 4,
    arbitrary: record({
      kind: constantFrom('changes' as const),
      changes: array(change, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 3,
    arbitrary: record({
      kind: constantFrom('keep' as const),
      pieces: integer({ min: 1, max: 4 }),
      piece: integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: record({ kind: constantFrom('keep at once' as const), piece: integer({ min: 1, max: 5 }) }),
  },
  { weight: 1, arbitrary: record({ kind: constantFrom('killed' as const) }) },
  {
    weight: 1,
    arbitrary: record({
      kind: constantFrom('clock ahead' as const),
      hours: integer({ min: 1, max: 200 }),
      back: integer({ min: 1, max: 300 }),
      keep: boolean(),
      changes: array(change, { minLength: 1, maxLength: 4 }),
      after: array(change, { maxLength: 3 }),
    }),
  },
);
type Change = ReturnType<(typeof change)['generate']>['value'];
type Step = ReturnType<(typeof step)['generate']>['value'];

/** The mirror as its writers know it. */
class World {
  readonly #prices = new Map<string, number | null>();
  #now: bigint;

  constructor(now: bigint) {
    this.#now = now;
  }

  async begin(firstPriced: bigint): Promise<void> {
    const keys = SKUS.flatMap((sku) => SIZES.map((size) => ({ sku, size, price: size === '9' ? 55 : null })));
    for (const { sku, size, price } of keys) this.#prices.set(`${sku} ${size}`, price);
    await store.sql`
      insert into catalog.skus (sku, in_manifest, state, first_priced_at)
      select sku, true, 'priced', ${instantOf(firstPriced)}::text::timestamptz from unnest(${SKUS}::text[]) as s(sku)`;
    await this.#store();
  }

  /** Commits changes in one transaction, observed by this world's clock or by one that is ahead. */
  async commit(changes: readonly Change[], ahead: bigint | null = null): Promise<void> {
    const rows = changes.flatMap(({ sku, size, price, later, earlier, corrected }) => {
      this.#now = later === null ? (this.#now / DAY_US + 1n) * DAY_US : this.#now + later;
      const before = this.#prices.get(`${sku} ${size}`) ?? null;
      if (before === price) return [];
      this.#prices.set(`${sku} ${size}`, price);
      const at = instantOf(ahead === null ? this.#now - earlier : ahead + (later ?? 0n));
      return [{ sku, size, before, price, at, corrected }];
    });
    await store.sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
      select r.* from jsonb_to_recordset(${store.sql.json(rows)}::jsonb)
        as r(sku text, size text, before int, price int, at timestamptz, corrected boolean)`;
    await this.#store();
  }

  async #store(): Promise<void> {
    const rows = [...this.#prices].map(([key, price]) => ({
      sku: key.split(' ')[0],
      size: key.split(' ')[1],
      price,
    }));
    await store.sql`delete from catalog.prices`;
    await store.sql`
      insert into catalog.prices (sku, size, price, changed_at)
      select r.*, now() from jsonb_to_recordset(${store.sql.json(rows)}::jsonb) as r(sku text, size text, price int)
      where price is not null`;
  }
}

const instantOf = (us: bigint) =>
  `${new Date(Number(us / 1000n)).toISOString().slice(0, -1)}${String(us % 1000n).padStart(3, '0')}+00`;

async function take(world: World, present: bigint, drawn: Step): Promise<void> {
  const { sql } = store;
  switch (drawn.kind) {
    case 'changes':
      await world.commit(drawn.changes);
      break;
    case 'keep':
      await keepDailyPrices(sql, drawn.pieces, drawn.piece);
      break;
    case 'keep at once':
      await Promise.all([1, 2, 3].map(() => keepDailyPrices(sql, 2, drawn.piece)));
      break;
    case 'killed':
      await killed();
      break;
    case 'clock ahead':
      await world.commit(drawn.changes, present + BigInt(drawn.hours) * HOUR_US);
      if (drawn.keep) await keepDailyPrices(sql, 10, 3);
      await world.commit(drawn.after);
      if (drawn.keep) await keepDailyPrices(sql, 1, 2);
      await sql.begin(async (tx) => {
        await tx`select catalog_internal.forget_days_ahead()`;
        await tx`select catalog_internal.redate_history(make_interval(hours => ${drawn.back}))`;
      });
      break;
  }
}

/** Runs a daemon that does a piece and dies before its commit. */
async function killed(): Promise<void> {
  const daemon = await store.sql.reserve();
  try {
    await daemon`begin`;
    const transaction = { begin: async (work: (tx: unknown) => Promise<unknown>) => await work(daemon) };
    await keepDailyPrices(transaction as never, 1, 3);
    await daemon`rollback`;
  } finally {
    daemon.release();
  }
}

async function compare(moments: readonly bigint[]): Promise<void> {
  const { sql } = store;
  await keepDailyPrices(sql, 1000, 7);
  const series = await readSeries(sql, 'catalog.price_history');
  const days = [...series]
    .map(([key, of]) => [key, daysOf(of)] as const)
    .filter(([, { length }]) => length > 0);
  expect(Object.fromEntries(await readDays(sql))).toEqual(Object.fromEntries(days));
  for (const [key, of] of series) await comparePrices(key, of, moments);
}

async function comparePrices(key: string, of: Series, moments: readonly bigint[]): Promise<void> {
  const [sku = '', size = ''] = key.split(' ');
  const near = counting(of).flatMap(({ at }) => [at - 1n, at, at + 1n]);
  const asked = [...moments, ...near, (of.firstPricedAt ?? 0n) - 1n, of.firstPricedAt ?? 0n];
  const rows = await store.sql<{ price: number | null; whole: number | null }[]>`
    select catalog.price_at(${sku}, ${size}, at) as price,
      (select price from catalog.prices_at(${sku}, at) p where p.size = ${size}) as whole
    from unnest(${asked.map(instantOf)}::text[]::timestamptz[]) with ordinality as a(at, n) order by n`;
  const expected = asked.map((at) => priceAt(of, at));
  expect(rows.map(({ price }) => price)).toEqual(expected);
  expect(rows.map(({ whole }) => whole)).toEqual(expected);
}

test('days and prices at any time match a replay of all changes, whatever happened in between', async () => {
  const histories = tuple(
    array(step, { minLength: 1, maxLength: 10 }),
    constantFrom(0n, 1n, 5n * HOUR_US, DAY_US - 1n),
    array(integer({ min: 0, max: 60 * 24 * 40 }), { maxLength: 5 }),
  );
  await assert(
    asyncProperty(histories, async ([steps, firstPriced, minutes]) => {
      await empty(store.sql);
      const present = BigInt(Date.now()) * 1000n;
      // Long enough ago that only a clock that is ahead observes anything in the future.
      const begin = (present / DAY_US - 400n) * DAY_US;
      const world = new World(begin + firstPriced + 31n * HOUR_US);
      await world.begin(begin + firstPriced);
      for (const drawn of steps) await take(world, present, drawn);
      await compare(minutes.map((minute) => begin + BigInt(minute) * 60_000_000n));
    }),
    { numRuns: runs(60, 300) },
  );
});
