import { array, assert, asyncProperty, constantFrom, record } from 'fast-check';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { LONGEST_CACHED_SECONDS } from '../../src/store/catalog/audit.ts';
import { putClockRight } from '../../src/store/clock.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { dateAll, setClockAhead, timesAfter } from '../support/movable-clock.ts';
import { runs } from '../support/soak.ts';
import { ahead, beginAnew, DAY, HOUR, LIMITS, SKUS, trust, useClockedStore } from './clocked.ts';
import { allDue, answerAsked, found, knownSkus, LEASE_MS, mark, pricesOf, REFRESH } from './support.ts';

const store = useClockedStore();

/** Requests SKUs that no earlier claim holds. */
async function ask(...results: readonly SkuResult[]): Promise<void> {
  await mark(
    store.sql,
    results.map(({ sku }) => sku),
  );
  const claim = await claimDue(store.sql, { quotas: allDue(10) }, LEASE_MS);
  if (claim !== null) await applyAnswer(store.sql, claim, results, REFRESH);
}

/** How many SKUs this run has added. */
let named = 0;

/** What a daemon may be doing while the clock is ahead. */
const ACTS = {
  answer: () => ask(found('A', { 9: 110 }), found('B', { 9: 120 })),
  gone: () => ask({ sku: 'C', kind: 'not_found' }),
  defer: () => ask({ sku: 'D', kind: 'deferred', waitMs: 120_000 }),
  fail: () => ask({ sku: 'E', kind: 'error', waitMs: 900_000 }),
  async claim() {
    await mark(store.sql, ['F']);
    await claimDue(store.sql, { quotas: allDue(10) }, LEASE_MS);
  },
  async late() {
    await mark(store.sql, ['A']);
    const claim = await claimDue(store.sql, { quotas: allDue(10) }, LEASE_MS);
    await setClockAhead(store.sql, 0);
    if (claim !== null) await applyAnswer(store.sql, claim, [found('A', { 9: 150 })], REFRESH);
  },
  send: () => createPacer(store.sql, systemClock, LIMITS).acquire('delta', 5000),
  take: () => store.sql`select catalog.take_request('orders')`,
  refuse: async () => {
    const acquired = await createPacer(store.sql, systemClock, LIMITS).acquire('delta', 5000);
    if (acquired.kind === 'granted') await acquired.permit.settle('throttled-or-forbidden');
  },
  report: () => store.sql`update catalog.skus set reported_at = now() where sku = 'F'`,
  find: () => knownSkus(store.sql, [`new-${(named += 1)}`]),
} as const satisfies Record<string, () => Promise<unknown>>;

/** Columns that may lie in the future, and by how many seconds at most. */
const WAITS: Readonly<Record<string, number>> = {
  'catalog_internal.due.due_at': 40 * HOUR,
  'catalog_internal.due.held_until': (LEASE_MS / 1000) * 1.01,
  'catalog_internal.due.again_at': LONGEST_CACHED_SECONDS,
  'catalog_internal.tasks.next_at': HOUR,
  'catalog_internal.tasks.running_until': 20,
  // The clock's high-water mark may lag by the time that the acts took.
  'catalog_internal.pace.backoff_until': 80,
};

test('after a clock that was ahead is corrected, no time lies ahead and no wait is longer than intended', async () => {
  const names = Object.keys(ACTS) as (keyof typeof ACTS)[];
  const drawn = record({
    seconds: constantFrom(30, 61, 3 * HOUR, 8 * DAY, 400 * DAY),
    acts: array(constantFrom(...names), { minLength: 1, maxLength: 10 }),
  });
  await assert(
    asyncProperty(drawn, async ({ seconds, acts }) => {
      await beginAnew(store);
      named = 0;
      await ahead(store, seconds, async () => {
        for (const act of acts) await ACTS[act]();
      });
      expect((await putClockRight(store.sql))?.seconds).toBeGreaterThan(0);
      const [{ now }] = await store.sql<
        [{ now: Date }]
      >`select clock_timestamp() + interval '1 millisecond' as now`;
      const later = Object.entries(await timesAfter(store.sql, now)).map(([column, at]) => [
        column,
        (at.getTime() - now.getTime()) / 1000,
      ]);
      for (const [column = '', wait = 0] of later as [string, number][])
        expect(wait, `${column} lies ahead`).toBeLessThanOrEqual(WAITS[column] ?? 0);
      // What was answered meanwhile is doubted until it is requested again, and everything can be.
      const fresh = Object.entries(await trust(store)).filter(([, row]) => row.fresh);
      expect(fresh.filter(([, { doubt }]) => doubt === 'clock')).toEqual([]);
      await store.sql`update catalog_internal.due set held_until = null, claim = null`;
      const prices = Object.fromEntries(SKUS.map((sku) => [sku, found(sku, { 9: 100 })]));
      await answerAsked(store.sql, ...Object.values(prices));
      expect(await pricesOf(store.sql, 'A')).toEqual({ 9: 100 });
      expect(Object.values(await trust(store)).filter(({ doubt }) => doubt === 'clock')).toEqual([]);
    }),
    {
      // In milliseconds, the end of a back-off lies further ahead than an integer can hold.
      examples: [[{ seconds: 400 * DAY, acts: ['refuse', 'late', 'take'] }]],
      numRuns: runs(25),
    },
  );
});

/** Columns that may stay dated ahead, and why. */
const HARMLESS: ReadonlySet<string> = new Set([
  // Such a row goes with the change that it begins with, if that is dated ahead (daily-clock.pg.test.ts).
  'catalog.daily_prices.first_change_at',
  // A place that is taken for longer than possible counts as free (catalog.refresh_begin).
  'catalog_internal.refresh_places.until',
]);

test('no time in any column of the mirror stays ahead', async () => {
  await setClockAhead(store.sql, 8 * DAY);
  const dated = await dateAll(store.sql);
  // What is planned for an answer is later than the answer; depending on which was dated first, it may be earlier.
  await store.sql`update catalog_internal.due set due_at = due_at + interval '1 minute'`;
  await setClockAhead(store.sql, 0);
  expect((await putClockRight(store.sql))?.seconds).toBeGreaterThan(8 * DAY - 60);
  const [{ now }] = await store.sql<
    [{ now: Date }]
  >`select clock_timestamp() + interval '1 millisecond' as now`;
  const left = Object.entries(await timesAfter(store.sql, now)).filter(
    ([column, at]) => !HARMLESS.has(column) && (at.getTime() - now.getTime()) / 1000 > (WAITS[column] ?? 0),
  );
  expect(left).toEqual([]);
  expect(dated).toEqual(expect.arrayContaining(['catalog_internal.beliefs.late_since', ...HARMLESS]));
});
