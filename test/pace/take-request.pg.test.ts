import { describe, expect, test } from 'vitest';
import { readPace } from '../../src/pace/ledger.ts';
import { guardMs, paceLimits, sendsPerWindow } from '../../src/pace/policy.ts';
import { refusalOf } from '../../src/pace/view.ts';
import { storeSettings } from '../../src/store/setup/sql-settings.ts';
import { useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const HOUR_S = 3600;
/** A window so long that nothing leaves it during a test. */
const SETTINGS = settingsWith({
  PARTNER_RATE_LIMIT: '30',
  PARTNER_RATE_WINDOW: '1h',
  PARTNER_RATE_SHARE: '0.6',
  PARTNER_RATE_FLOOR: '0.2',
});
const LIMITS = paceLimits(SETTINGS);
/** Requests per window of the whole account, and of its other users beside the mirror's floor. */
const ALLOWED = sendsPerWindow({ ...LIMITS, maxPerWindow: LIMITS.account.limit });
const BESIDE_FLOOR = ALLOWED - LIMITS.account.floor;

/** Logs `count` requests, all sent `secondsAgo`. */
async function sent(count: number, secondsAgo: number, by: 'mirror' | 'other'): Promise<void> {
  await storeSettings(store.sql, SETTINGS, LIMITS);
  if (by === 'other')
    await store.sql`
      select catalog_internal.count_other(clock_timestamp() - make_interval(secs => ${secondsAgo}::float8))
      from generate_series(1, ${count}::int)`;
  else
    await store.sql`
      insert into catalog_internal.pace_sends (sent_at, lane)
      select clock_timestamp() - make_interval(secs => ${secondsAgo}::float8), 'test' from generate_series(1, ${count}::int)`;
}

async function take(): Promise<number> {
  await storeSettings(store.sql, SETTINGS, LIMITS);
  const [row] = await store.sql<[{ wait: number }]>`select catalog.take_request('orders') as wait`;
  return row.wait;
}

/** Whole minutes, guard included, until a request sent `secondsAgo` leaves the window. */
const minutesUntilGone = (secondsAgo: number) =>
  Math.round((HOUR_S + guardMs(LIMITS) / 1000 - secondsAgo) / 60);

describe('catalog.take_request', () => {
  test('grants the last request of the account’s limit, and no more', async () => {
    await sent(ALLOWED - 1, 60, 'mirror');
    expect(await take()).toBe(0);
    expect(await take()).toBeGreaterThan(0);
    const [row] = await store.sql`select count(*)::int as count from catalog_internal.pace_sends`;
    expect(row).toEqual({ count: ALLOWED });
    expect((await readPace(store.sql, LIMITS.windowMs)).others).toBe(1);
  });

  test('grants the last request beside the mirror’s floor, and no more', async () => {
    await sent(BESIDE_FLOOR - 1, 60, 'other');
    expect(await take()).toBe(0);
    expect(await take()).toBeGreaterThan(0);
  });

  test('with only the floor left waits for a request of another service to leave the window, not one of the mirror', async () => {
    await sent(1, 3000, 'mirror');
    await sent(BESIDE_FLOOR, 600, 'other');
    const minutes = (await take()) / 60_000;
    expect(minutes).toBeGreaterThan(minutesUntilGone(600) - 1);
    // Requests of others are counted in fifteenths of the window.
    expect(minutes).toBeLessThan(minutesUntilGone(600) + 60 / 15 + 1);
  });

  test('at the limit waits for the first request of anybody to leave the window', async () => {
    await sent(1, 3000, 'mirror');
    await sent(ALLOWED - 1, 600, 'other');
    expect(Math.round((await take()) / 60_000)).toBe(minutesUntilGone(3000));
  });

  test('does not count requests that have left the window', async () => {
    await sent(ALLOWED, HOUR_S + HOUR_S / 10, 'other');
    expect(await take()).toBe(0);
  });

  /** Starts a back-off that ends in `minutes`. */
  const refused = (refusals: number, windows: number, minutes: number, refusal = 'throttled-or-forbidden') =>
    store.sql`
      insert into catalog_internal.pace
        (ceiling, raised_at, backoff_until, episodes, refusal, refused_since, refused_at, occupancy)
      values (10, now(), now() + make_interval(mins => ${minutes}), ${refusals}, ${refusal},
        now() - make_interval(hours => 1) * ${windows}::float8, now(), 1)`;

  test.each([
    [2, 3, 'throttled-or-forbidden', false],
    [3, 3, 'throttled-or-forbidden', true],
    [12, 3, 'throttled-or-forbidden', true],
    [3, 0.9, 'throttled-or-forbidden', false],
    [3, 3, 'account-not-configured', false],
  ] as const)(
    'after %i refusals in a row within %d windows, %s, grants in a back-off if the credential is suspected: %s',
    async (refusals, windows, refusal, had) => {
      await refused(refusals, windows, 120, refusal);
      const { state } = await readPace(store.sql, LIMITS.windowMs);
      expect(state !== null && refusalOf(LIMITS, state)?.suspected === 'credential').toBe(had);
      expect((await take()) === 0).toBe(had);
    },
  );

  test.each([
    [62, 0],
    [59, 59],
    [1, 1],
  ])(
    '%i minutes before the end of such a back-off waits %i minutes: the half-open request needs a free window',
    async (minutes, held) => {
      await refused(12, 3, minutes);
      expect(Math.round((await take()) / 60_000)).toBe(held);
    },
  );

  test('without a lane counts one request, as one of other users', async () => {
    await storeSettings(store.sql, SETTINGS, LIMITS);
    expect(await store.sql`select catalog.take_request(null) as wait`).toEqual([{ wait: 0 }]);
    expect(await store.sql`select lane from catalog_internal.pace_sends`).toEqual([{ lane: 'other' }]);
    expect((await readPace(store.sql, LIMITS.windowMs)).others).toBe(1);
  });
});
