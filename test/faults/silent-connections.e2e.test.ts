import { randomInt } from 'node:crypto';
import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { moveMarket, randomFrom } from '../support/market.ts';
import { expectCursorNotAhead } from '../support/oracle.ts';
import type { Watcher } from '../support/proxy.ts';
import { type Backend, backends } from '../support/stack.ts';
import { expectWhole, get, timePasses, untilLogged, untilTimely, untilWhole } from './harness.ts';
import { createSilentStack } from './silent-stack.ts';

const WAITS = { answerMs: 2000, queueAnswerMs: 1000 };
const ENOUGH = 5;
/**
 * The promise is a minute, which silent-connections.timed.test.ts checks; on a busy machine it takes longer. Linux
 * by itself gives up a connection only after a quarter of an hour.
 */
const COST_MS = 180_000;

/** Longer than all waits below, so that the wait that failed is reported. */
const TEST_MS = 600_000;

const SEED = Number(process.env['SEED'] ?? randomInt(2 ** 31));

/**
 * Once `pieces` more have passed in this direction, all connections stop passing data: after the last one, or
 * before it.
 */
function after(pieces: number, direction: Parameters<Watcher>[1], passes: boolean) {
  let left = pieces;
  return {
    over: () => left < 0,
    watcher: (): Watcher => (_, where) => {
      if (where !== direction || left < 0) return 'pass';
      left -= 1;
      if (left >= 0) return 'pass';
      return passes ? 'pass-and-silence' : 'silence';
    },
  };
}

/** Before a statement reaches Postgres, while it runs, before its answer arrives, or after it. */
const MOMENTS = [
  ['before a statement', 'to-server', false],
  ['while a statement runs', 'to-server', true],
  ['before an answer', 'to-client', false],
  ['after an answer', 'to-client', true],
] as const;

/** When it happens: during the fill, at work, and during deltas. */
const TIMES = [
  `(select running_until is not null from catalog_internal.tasks where task = 'manifest')`,
  `(select count(*) from catalog.skus where state = 'priced') > 150`,
  `(select manifest_applied_at is not null from catalog_internal.sync)`,
] as const;

/** Draws each moment once, with alternating backends and two of the times. */
function draw() {
  const random = randomFrom(SEED);
  const from = Math.floor(random() * 2);
  return MOMENTS.map(([moment, direction, passes], number) => {
    const backend = backends()[(from + number) % backends().length] as Backend;
    const spared = Math.floor(random() * TIMES.length);
    const silences = TIMES.filter((_, time) => time !== spared).map((time) => ({
      time,
      pieces: Math.floor(random() * 40),
    }));
    return { backend, moment, direction, passes, silences };
  });
}

describe.concurrent(`connections that go dead, SEED=${SEED}`, { timeout: TEST_MS }, () => {
  test.each(draw())(
    'queues in $backend, $moment: the mirror continues by itself',
    async ({ backend, direction, passes, silences }) => {
      await using silent = await createSilentStack(backend);
      const { stack, proxies } = silent;
      const { sql, sandbox } = stack;
      const app = await stack.start(silent.env, WAITS);
      const [postgres] = proxies;
      for (const { time, pieces } of silences) {
        await untilTimely(sql, time, time);
        const silence = after(pieces, direction, passes);
        postgres?.watch(silence.watcher);
        await eventually(silence.over, { what: 'silence' });
        silent.silence();
        const asked = sandbox.requests.length;
        await eventually(
          async () => {
            await timePasses(sql);
            return sandbox.requests.length >= asked + ENOUGH;
          },
          { what: 'requests to the partner', within: COST_MS },
        );
        await expectCursorNotAhead(sql, sandbox.world);
      }
      await untilWhole(sql, sandbox.world);
      moveMarket(sandbox.world, 0);
      await untilWhole(sql, sandbox.world);
      await expectWhole(sql, sandbox.world);
      await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
    },
  );

  test('a wait for a lock is reported as such, and work goes on after it', async ({ expect }) => {
    await using silent = await createSilentStack('postgres', { DELTA_INTERVAL: '1h' });
    const { stack } = silent;
    await stack.start(silent.env);
    await untilWhole(stack.sql, stack.sandbox.world);
    const from = stack.logs.length;
    await stack.sql.begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx`lock table catalog_internal.tasks in access exclusive mode`;
      const line = await untilLogged(stack, 'job.failed', () => true, from);
      expect(line).toMatchObject({ err: { code: '55P03' } });
    });
    await stack.everythingDue();
    await untilWhole(stack.sql, stack.sandbox.world);
  });
});
