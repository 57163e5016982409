import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPacer, type Pacer } from '../../src/pace/pacer.ts';
import { claimDue } from '../../src/store/due.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { allDue, HOUR, knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };

/** What re-pricing does with a permit that comes when another process has claimed all there was. */
async function overtaken(waited: boolean) {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await mark(sql, ['A']);
  const pacer = createPacer(sql, systemClock, { maxPerWindow: 1000, windowMs: 60_000, backoffMs: 60_000 });
  const late: Pacer = {
    async acquire(...asked) {
      const acquired = await pacer.acquire(...asked);
      await claimDue(sql, { quotas: allDue(1) }, HOUR);
      return acquired.kind === 'granted' ? { ...acquired, waited } : acquired;
    },
  };
  const ctx = { sql, pacer: late, clock: systemClock, settings: settingsWith() } as unknown as SyncContext;
  return await repriceOnce(ctx, { number: 1, sinceLastCallMs: Infinity }, HOUR, signals);
}

test.each([
  [false, { kind: 'idle', nextInMs: 250 }],
  [true, { kind: 'idle' }],
])(
  'a call that is not made after all leaves its place in the window (waited for it: %s)',
  async (waited, end) => {
    expect(await overtaken(waited)).toMatchObject(end);
    expect([...(await store.sql`select lane from catalog_internal.pace_sends`)]).toEqual([]);
  },
);
