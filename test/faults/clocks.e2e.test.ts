import { describe, expect, test } from 'vitest';
import type { App } from '../../src/daemon/app.ts';
import { eventually } from '../support/eventually.ts';
import { makeClockMovable, setClockAhead, timesAfter } from '../support/movable-clock.ts';
import {
  expectCursorNotAhead,
  expectHistoryIsAChain,
  expectMirrorIsTrue,
  isReported,
} from '../support/oracle.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { get, untilLogged } from './harness.ts';

/*
 * The clock of Postgres is changed while a daemon works, and corrected. After that, requests resume within half a
 * minute, no price looks fresh because of a future time, and nothing is lost.
 */

const DAY = 86_400;
const HOUR = 3600;

/** Starts a filled mirror whose clock can be changed, with short intervals. */
async function working(): Promise<Stack & { readonly app: App }> {
  const stack = await createStack({
    database: 'empty',
    sandbox: { skus: 60 },
    env: { DELTA_INTERVAL: '1s', LIVE_INTERVAL: '3s', HISTORY_RETENTION: '7d' },
  });
  await makeClockMovable(stack.databaseUrl);
  const app = await stack.start();
  await filled(stack);
  return Object.assign(stack, { app });
}

const filled = (stack: Stack) =>
  eventually(
    async () => {
      const [row] = await stack.sql<[{ pending: number }]>`
        select count(*) filter (where state = 'pending')::int + (count(*) = 0)::int as pending from catalog.skus`;
      return row.pending === 0;
    },
    { what: 'a mirror that is filled' },
  );

const doubts = async ({ sql }: Stack): Promise<Set<string | null>> => {
  const rows = await sql<{ doubt: string | null }[]>`
    select distinct doubt from catalog.sku_trust where state = 'priced'`;
  return new Set(rows.map(({ doubt }) => doubt));
};

async function codes(app: App): Promise<string[]> {
  const { text } = await get(app, '/readyz');
  return (JSON.parse(text) as { reasons: { code: string }[] }).reasons.map(({ code }) => code);
}

/** Moves the catalog, and checks that the mirror follows with requests, answers and deltas as usual. */
async function follows(stack: Stack): Promise<void> {
  stack.sandbox.world.step(20);
  stack.sandbox.world.buildSnapshot();
  await eventually(
    async () => {
      const [row] = await stack.sql<[{ there: boolean }]>`
        select snapshot_id = ${String(stack.sandbox.world.newestSnapshot())} as there from catalog_internal.sync`;
      return row.there;
    },
    { what: 'a mirror that follows' },
  );
  await stack.caughtUp();
  await expectCursorNotAhead(stack.sql, stack.sandbox.world, isReported);
  await stack.everythingDue();
  await stack.caughtUp();
  await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
}

/** Checks that no time in the mirror is further ahead than its settings schedule. */
async function expectNoFuture({ sql }: Stack): Promise<void> {
  const [{ now }] = await sql<[{ now: Date }]>`select clock_timestamp() + interval '2 days' as now`;
  // Sweeps are scheduled a day ahead; SKUs that are not found and manifests, a week.
  const {
    'catalog_internal.due.due_at': _due,
    'catalog_internal.tasks.next_at': _next,
    ...rest
  } = await timesAfter(sql, now);
  expect(rest).toEqual({});
}

describe.concurrent('the clock of Postgres', () => {
  test.each([
    ['8 days', 8 * DAY],
    ['an hour', HOUR],
  ])(
    'may be ahead by %s for some seconds: work goes on afterwards, and no price looks fresh because of it',
    async (_, seconds) => {
      await using stack = await working();
      const { app, sql } = stack;
      await setClockAhead(sql, seconds);
      await untilLogged(stack, 'clock.differs', ({ clock }) => clock === 'postgres');
      // It is logged first, and then stored, where everybody can see it.
      await eventually(async () => (await codes(app)).includes('clock'), { what: 'the reason clock' });
      expect(await doubts(stack)).toEqual(new Set(['clock']));
      stack.sandbox.world.step(20);
      stack.sandbox.world.buildSnapshot();
      await eventually(
        async () => {
          const [row] = await sql<[{ asked: number }]>`
          select count(*)::int as asked from catalog.skus where asked_at > now() - interval '10 minutes'`;
          return row.asked > 0;
        },
        { what: 'answers by the wrong clock' },
      );

      const from = stack.logs.length;
      await setClockAhead(sql, 0);
      await untilLogged(stack, 'clock.set-back', () => true, from);
      await follows(stack);
      await expectNoFuture(stack);
      await expectHistoryIsAChain(sql);
      await eventually(
        async () => !(await codes(app)).includes('clock') && !(await doubts(stack)).has('clock'),
        {
          what: 'a clock that is believed again',
        },
      );
    },
  );

  test('may be behind by a day for some seconds: work goes on before and after the correction', async () => {
    await using stack = await working();
    await setClockAhead(stack.sql, -DAY);
    await untilLogged(stack, 'clock.set-back');
    await follows(stack);
    await setClockAhead(stack.sql, 0);
    await untilLogged(
      stack,
      'clock.jumped',
      ({ clock, bySeconds }) => clock === 'postgres' && Number(bySeconds) > 0,
    );
    await follows(stack);
    await expectNoFuture(stack);
  });

  test('may have been ahead when the daemon stopped: the next one works with the corrected clock', async () => {
    await using stack = await working();
    const { sql } = stack;
    await setClockAhead(sql, 8 * DAY);
    await untilLogged(stack, 'clock.differs');
    await stack.app.stop();
    await setClockAhead(sql, 0);
    expect(await doubts(stack)).toEqual(new Set(['clock']));
    await stack.start();
    await follows(stack);
    await expectNoFuture(stack);
  });
});
