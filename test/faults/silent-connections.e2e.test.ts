import { randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { moveMarket, randomFrom } from '../support/market.ts';
import { expectCursorNotAhead } from '../support/oracle.ts';
import type { Watcher } from '../support/proxy.ts';
import { type Backend, backends } from '../support/stack.ts';
import { expectWhole, get, timePasses, untilLogged, untilTimely, untilWhole } from './harness.ts';
import { createSilentStack } from './silent-stack.ts';

const WAITS = { answerMs: 2000, queueAnswerMs: 1000 };
const ENOUGH = 8;
/** As in production, although these waits are shorter: a worker of Redis waits for a job for its ten seconds here, too. */
const COST_MS = 60_000;

/** Once `pieces` more have passed in this direction, all connections fall silent: with the last of them, or before it. */
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

/** Before a statement reaches Postgres, while it is at work, before its answer arrives, or after it. */
const MOMENTS = [
  ['before a statement', 'to-server', false],
  ['while a statement runs', 'to-server', true],
  ['before an answer', 'to-client', false],
  ['after an answer', 'to-client', true],
] as const;

const cases = backends().flatMap((backend) =>
  MOMENTS.map(([moment, direction, passes]) => [backend, moment, direction, passes] as const),
);

describe('connections that fall silent', () => {
  test.concurrent.each(cases)(
    'queues in %s, %s: in the fill, at work and in deltas, the mirror goes on by itself',
    async (backend: Backend, _, direction, passes) => {
      const seed = randomInt(2 ** 31);
      console.log(`seed ${seed}`);
      const random = randomFrom(seed);
      await using silent = await createSilentStack(backend);
      const { stack, proxies } = silent;
      const { sql, sandbox } = stack;
      const app = await stack.start(silent.env, WAITS);
      const [postgres] = proxies;
      for (const there of [
        `(select running_until is not null from catalog_internal.tasks where task = 'manifest')`,
        `(select count(*) from catalog.skus where state = 'priced') > 150`,
        `(select manifest_applied_at is not null from catalog_internal.sync)`,
      ]) {
        await untilTimely(sql, there, there);
        const silence = after(Math.floor(random() * 40), direction, passes);
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

  test('a wait for a lock is told as one, and its connection lives', async () => {
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
