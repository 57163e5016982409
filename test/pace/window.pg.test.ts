import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import { type PaceLimits, sendsPerWindow } from '../../src/pace/policy.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { maintain } from '../../src/sync/maintenance.ts';
import { HOUR, useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const LIMITS: PaceLimits = { maxPerWindow: 24, windowMs: 60_000, backoffMs: 60_000 };
const FULL = sendsPerWindow(LIMITS);

/** Logs `count` requests of the mirror, all sent `ms` ago. */
async function sent(count: number, ms: number): Promise<void> {
  await store.sql`
    insert into catalog_internal.pace_sends (sent_at, lane)
    select clock_timestamp() - make_interval(secs => ${ms / 1000}::float8), 'test' from generate_series(1, ${count}::int)`;
}

const count = () =>
  store.sql<[{ count: number }]>`select count(*)::int as count from catalog_internal.pace_sends`.then(
    ([row]) => row.count,
  );

/** Returns the answer to a request after a full share that was sent `ms` ago. */
async function beside(ms: number) {
  await store.sql`delete from catalog_internal.pace_sends`;
  await store.sql`
    insert into catalog_internal.pace (ceiling, raised_at) values (1000, now()) on conflict (id) do nothing`;
  await sent(FULL, ms);
  return await createPacer(store.sql, systemClock, LIMITS).acquire('reprice', 0);
}

describe('a request sent one window ago', () => {
  test('still counts until the guard is over, because it may have arrived later than it was sent', async () => {
    // A machine that stalls for half a second between the two steps gets another try.
    await eventually(async () => {
      expect(await beside(LIMITS.windowMs + 50)).toMatchObject({ kind: 'wait', because: 'window' });
    });
  });

  test('no longer counts after the guard', async () => {
    expect(await beside(LIMITS.windowMs + 600)).toMatchObject({ kind: 'granted' });
  });

  test('is kept by maintenance for ten windows, and for at least ten minutes', async () => {
    const kept = async (windowMs: number, ...ages: readonly number[]) => {
      await store.sql`delete from catalog_internal.pace_sends`;
      for (const age of ages) await sent(1, age);
      const ctx = {
        sql: store.sql,
        clock: systemClock,
        settings: settingsWith(),
        tracer: NO_TRACER,
      } as unknown as SyncContext;
      await maintain(ctx, { windowMs, historyMs: 0, dailyMs: 0 });
      return await count();
    };
    expect(await kept(HOUR, 0.9 * HOUR, 9 * HOUR, 11 * HOUR)).toBe(2);
    expect(await kept(1000, 9 * 60_000, 11 * 60_000)).toBe(1);
  });
});
