import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { readPace } from '../../src/pace/ledger.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import { guardMs, paceLimits, sendsPerWindow } from '../../src/pace/policy.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { waitForLock } from '../../src/store/connection/locks.ts';
import { storeSettings } from '../../src/store/setup/sql-settings.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { settingsWith } from '../support/settings.ts';
import { forgetOthers } from './others.ts';

const SETTINGS = settingsWith({
  PARTNER_RATE_LIMIT: '60',
  PARTNER_RATE_WINDOW: '60s',
  PARTNER_RATE_FLOOR: '0.2',
});
const LIMITS = paceLimits(SETTINGS);
const SPAN_MS = LIMITS.windowMs + guardMs(LIMITS);
/** The most that other services may send in a window: everything but the mirror's floor. */
const MOST = sendsPerWindow({ ...LIMITS, maxPerWindow: 60 }) - 12;

let database: TestDatabase;
let sql: Sql;
let services: Sql;

beforeAll(async () => {
  database = await createDatabase('migrated');
  [sql, services] = [connect(database.url, { max: 4 }), connect(database.url, { max: 8 })];
  await storeSettings(sql, SETTINGS, LIMITS);
});

beforeEach(async () => {
  await sql`truncate catalog_internal.pace_sends, catalog_internal.pace`;
  await forgetOthers(sql);
});

afterAll(async () => {
  await Promise.all([sql.end({ timeout: 2 }), services.end({ timeout: 2 })]);
  await database.drop();
});

const take = async (tx: Pick<Sql, 'unsafe'>): Promise<number> => {
  const [row] = await tx.unsafe("select catalog.take_request('orders') as wait");
  return (row as unknown as { wait: number }).wait;
};

const counted = async () => (await readPace(sql, SPAN_MS)).others;

describe('catalog.take_request in a transaction that stays open', () => {
  test('delays neither the mirror nor another service, and is counted at once', async () => {
    await services.begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      expect(await take(tx)).toBe(0);
      expect(await counted()).toBe(1);
      const impatient = connect(database.url, { max: 1 });
      try {
        await impatient`set lock_timeout = '500ms'`;
        expect(await take(impatient)).toBe(0);
        await impatient.begin((one) => waitForLock(one, 'pace'));
      } finally {
        await impatient.end({ timeout: 2 });
      }
      const acquired = await createPacer(sql, systemClock, LIMITS).acquire('reprice', 0);
      expect(acquired.kind).toBe('granted');
      expect(await counted()).toBe(2);
    });
    expect(await counted()).toBe(2);
  });

  test('stays counted after a rollback, because the request may have been sent', async () => {
    const rolledBack = services.begin(async (tx) => {
      expect(await take(tx)).toBe(0);
      throw new Error('the service changed its mind');
    });
    await expect(rolledBack).rejects.toThrow('changed its mind');
    expect(await counted()).toBe(1);
    expect([...(await sql`select from catalog_internal.pace_sends`)]).toEqual([]);
  });

  test('grants as many requests as there is room for, however many transactions there are and however they end', async () => {
    const call = fc.record({
      calls: fc.integer({ min: 1, max: 12 }),
      end: fc.constantFrom('commit', 'rollback', 'stay open'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 6, maxLength: 8 }), async (transactions) => {
        await sql`truncate catalog_internal.pace_sends`;
        await forgetOthers(sql);
        let gone = 0;
        let end = () => {};
        const last = new Promise<void>((resolve) => (end = resolve));
        const one = async ({ calls, end: how }: (typeof transactions)[number], begun: () => void) => {
          await services.begin(async (tx) => {
            for (let i = 0; i < calls; i += 1) if ((await take(tx)) === 0) gone += 1;
            begun();
            if (how === 'stay open') await last;
            if (how === 'rollback') throw new Error('rolled back');
          });
        };
        const ends: Promise<unknown>[] = [];
        const all = transactions.map(
          (transaction) =>
            new Promise<void>((begun) =>
              ends.push(
                one(transaction, begun).catch((error: unknown) =>
                  expect(String(error)).toContain('rolled back'),
                ),
              ),
            ),
        );
        await Promise.all(all);
        const asked = transactions.reduce((sum, { calls }) => sum + calls, 0);
        expect(gone).toBe(Math.min(asked, MOST));
        expect(await counted()).toBe(gone);
        end();
        await Promise.all(ends);
        expect(await counted()).toBe(gone);
      }),
      { numRuns: 15 },
    );
  });

  test('is refused with a hint if its snapshot hides what was sent since it began', async () => {
    const old = services.begin('isolation level repeatable read', async (tx) => {
      await tx`select pg_sleep(1.1)`;
      await take(tx);
    });
    await expect(old).rejects.toMatchObject({
      code: 'CM002',
      hint: expect.stringContaining('read committed'),
    });
    const young = await services.begin('isolation level serializable', (tx) => take(tx));
    expect(young).toBe(0);
    // A synonym of read committed.
    const committed = await services.begin('isolation level read uncommitted', async (tx) => {
      await tx`select pg_sleep(1.1)`;
      return await take(tx);
    });
    expect(committed).toBe(0);
  });

  test('serializable services do not fail because of each other, and each of their requests is counted', async () => {
    const served = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const service = connect(database.url, { max: 1 });
        try {
          await service`set default_transaction_isolation = 'serializable'`;
          const waits: number[] = [];
          for (let call = 0; call < 4; call += 1) waits.push(await take(service));
          return waits.filter((wait) => wait === 0).length;
        } finally {
          await service.end({ timeout: 2 });
        }
      }),
    );
    const granted = served.reduce((sum, calls) => sum + calls, 0);
    expect(granted).toBe(32);
    expect(await counted()).toBe(granted);
  });
});

test('requests count until the part of the window in which they were counted has left it', async () => {
  const [{ part }] = await sql<[{ part: number }]>`select catalog_internal.others_part()::int as part`;
  /** Returns the count of seven requests in a part that ended `afterMs` after the window began. */
  const countedOf = async (afterMs: number) => {
    const back = Math.round(SPAN_MS) + part - Math.round(afterMs);
    await sql`
      select setval('catalog_internal.others_sent_3',
        ((extract(epoch from clock_timestamp()) * 1000)::bigint - ${back}::int) << 20 | 7)`;
    return await counted();
  };
  expect(await countedOf(0.9 * part)).toBe(7);
  expect(await countedOf(-1)).toBe(0);
});

test('catalog.take_request says when to ask again while a frozen daemon holds the lock', async () => {
  let free = () => {};
  const frozen = new Promise<void>((resolve) => (free = resolve));
  let begun = () => {};
  const locked = new Promise<void>((resolve) => (begun = resolve));
  const holding = sql.begin(async (tx) => {
    await waitForLock(tx, 'pace');
    begun();
    await frozen;
  });
  await locked;
  expect(await take(services)).toBe(1000);
  free();
  await holding;
  expect(await take(services)).toBe(0);
});

test.each([0, 1, 2])(
  'catalog.take_request counts the mirror’s requests with the others’: room for %i',
  async (room) => {
    const others = MOST - 6;
    for (let i = 0; i < others; i += 1) expect(await take(services)).toBe(0);
    const own = sendsPerWindow({ ...LIMITS, maxPerWindow: 60 }) - others - room;
    await sql`
    insert into catalog_internal.pace_sends (sent_at, lane)
    select now() - make_interval(secs => i), 'reprice' from generate_series(1, ${own}::int) i`;
    const waits = [await take(services), await take(services), await take(services)];
    expect(waits.filter((wait) => wait === 0)).toHaveLength(room);
    for (const wait of waits.slice(room)) expect(wait).toBeLessThanOrEqual(SPAN_MS);
  },
);
