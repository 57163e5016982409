import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import { ceilingAt, guardMs, initialPace, paceLimits, sendsPerWindow } from '../../src/pace/policy.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { storeSettings } from '../../src/store/setup/sql-settings.ts';
import { mostWithin } from '../support/arrivals.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { settingsWith } from '../support/settings.ts';
import { forgetOthers } from './others.ts';

const LIMIT = 60;
const WINDOW_MS = 1000;
const FLOOR = 12;
const SETTINGS = settingsWith({
  PARTNER_RATE_LIMIT: String(LIMIT),
  PARTNER_RATE_WINDOW: `${WINDOW_MS}ms`,
  PARTNER_RATE_SHARE: '0.6',
  PARTNER_RATE_FLOOR: String(FLOOR / LIMIT),
  PARTNER_BACKOFF: '500ms',
});
const LIMITS = paceLimits(SETTINGS);
const SPAN_MS = WINDOW_MS + guardMs(LIMITS);

let database: TestDatabase;
let sql: Sql;
let other: Sql;

beforeAll(async () => {
  database = await createDatabase('migrated');
  [sql, other] = [connect(database.url, { max: 4 }), connect(database.url, { max: 4 })];
  await storeSettings(sql, SETTINGS, LIMITS);
});

beforeEach(async () => {
  await sql`truncate catalog_internal.pace_sends, catalog_internal.pace`;
  await forgetOthers(sql);
});

afterAll(async () => {
  await Promise.all([sql.end({ timeout: 2 }), other.end({ timeout: 2 })]);
  await database.drop();
});

async function take(lane = 'orders'): Promise<number> {
  const [row] = await other<[{ wait: number }]>`select catalog.take_request(${lane}) as wait`;
  return row.wait;
}

/** Returns the requests that the mirror and, if `foreign`, other services sent at full speed for `forMs`. */
async function race(forMs: number, foreign: boolean): Promise<{ own: number[]; foreign: number[] }> {
  const pacer = createPacer(sql, systemClock, LIMITS);
  await sql`
    insert into catalog_internal.pace (ceiling, raised_at) values (1000, now()) on conflict (id) do nothing`;
  const end = performance.now() + forMs;
  const mirror = async () => {
    while (performance.now() < end) await pacer.acquire('reprice', 50);
  };
  const service = async () => {
    if (!foreign) return;
    while (performance.now() < end) {
      const wait = await take();
      if (wait > 0) await systemClock.sleep(Math.min(wait, 50));
    }
  };
  await Promise.all([mirror(), service(), service()]);
  const rows = await sql<{ at: number; foreign: boolean }[]>`
    select (extract(epoch from sent_at) * 1000)::float8 as at, other_user as foreign
    from catalog_internal.pace_sends order by sent_at`;
  return {
    own: rows.filter((r) => !r.foreign).map((r) => r.at),
    foreign: rows.filter((r) => r.foreign).map((r) => r.at),
  };
}

describe('catalog.take_request', () => {
  test('returns 0 for go, and writes the request into the log that the mirror reads', async () => {
    expect(await take('orders')).toBe(0);
    expect(await sql`select lane, other_user from catalog_internal.pace_sends`).toEqual([
      { lane: 'orders', other_user: true },
    ]);
  });

  test('leaves the mirror its floor, and returns how long to wait when the rest is used', async () => {
    const waits = await Promise.all(Array.from({ length: LIMIT }, () => take()));
    const gone = waits.filter((wait) => wait === 0).length;
    expect(gone).toBe(sendsPerWindow({ ...LIMITS, maxPerWindow: LIMIT }) - FLOOR);
    // Requests of others are counted in fifteenths of the window.
    for (const wait of waits.filter((w) => w > 0)) expect(wait).toBeLessThanOrEqual(SPAN_MS * (16 / 15) + 1);
  });

  test('and the mirror together never exceed the account’s limit; the mirror gives way down to its floor', async () => {
    const { own, foreign } = await race(3500, true);
    expect(mostWithin([...own, ...foreign], WINDOW_MS)).toBeLessThanOrEqual(LIMIT);
    const settledFrom = (own[0] ?? 0) + 2 * SPAN_MS;
    const late = own.filter((at) => at >= settledFrom && at < settledFrom + WINDOW_MS).length;
    expect(late).toBeLessThanOrEqual(FLOOR + 3);
    expect(late).toBeGreaterThanOrEqual(FLOOR / 2);
    expect(foreign.length).toBeGreaterThan(own.length);
  });

  test('leaves the mirror its whole share again once nobody calls it', async () => {
    await take();
    await forgetOthers(sql);
    // A busy machine may take several windows to fill one, but none is ever overfull.
    const own = await eventually(async () => {
      const sent = await race(2500, false);
      expect(mostWithin(sent.own, WINDOW_MS)).toBeGreaterThanOrEqual(sendsPerWindow(LIMITS) - 4);
      return sent.own;
    });
    expect(mostWithin(own, WINDOW_MS)).toBeLessThanOrEqual(sendsPerWindow(LIMITS));
  });

  test('waits for the end of a back-off like everyone else', async () => {
    await sql`
      insert into catalog_internal.pace (ceiling, raised_at, backoff_until) values (10, now(), now() + interval '30 seconds')`;
    expect(await take()).toBeGreaterThan(29_000);
    await sql`update catalog_internal.pace set backoff_until = now() - interval '1 second'`;
    expect(await take()).toBe(1000);
    await sql`update catalog_internal.pace set backoff_until = now() - interval '10 minutes'`;
    expect(await take()).toBe(0);
  });

  test('may be called by catalog_watcher but not by catalog_reader', async () => {
    const as = (role: string) =>
      sql.begin(async (tx) => {
        await tx`set local role ${tx(role)}`;
        return await tx`select catalog.take_request() as wait`;
      });
    expect(await as('catalog_watcher')).toEqual([{ wait: 0 }]);
    await expect(as('catalog_reader')).rejects.toMatchObject({ code: '42501' });
  });
});

test('sync_status shows the grown ceiling that the pacer uses', async () => {
  for (const [ceiling, secondsAgo] of [
    [1, 0],
    [10, 1],
    [20, 2.5],
    [20, 3600],
  ] as const) {
    await sql`truncate catalog_internal.pace`;
    await sql`
      insert into catalog_internal.pace (ceiling, raised_at)
      values (${ceiling}, now() - make_interval(secs => ${secondsAgo}))`;
    const [row] = await sql<
      [{ shown: number }]
    >`select requests_per_minute as shown from catalog.sync_status`;
    const now = 1_800_000_000_000;
    const state = { ...initialPace(LIMITS, now), ceiling, raisedAt: now - secondsAgo * 1000 };
    const shownPerWindow = (row.shown * WINDOW_MS) / 60_000;
    // It grows by five per window of a second: a third of one is 67 ms between writing and reading.
    expect(Math.abs(shownPerWindow - ceilingAt(LIMITS, state, now))).toBeLessThan(1 / 3);
  }
});
