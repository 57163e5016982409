import type { Sql, TransactionSql } from 'postgres';
import { expect, test } from 'vitest';
import { transact } from '../../src/client/transact.ts';

/** A statement of the driver that is under way, and is cancelled on a connection that is reset. */
function underWay() {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  let cancelled = 0;
  let isCaught = false;
  const canceller = () => {
    cancelled += 1;
    const reset = Promise.reject(new Error('read ECONNRESET'));
    const then = reset.then.bind(reset) as typeof reset.then;
    reset.then = ((done: never, failed: never) => {
      isCaught ||= typeof failed === 'function';
      return then(done, failed);
    }) as typeof reset.then;
    return reset;
  };
  const statement = Object.assign(promise, {
    resolve,
    reject,
    canceller,
    handler: () => {},
    // As the driver has it: what it returns is no promise.
    cancel: () => void canceller(),
  });
  return { statement, cancelled: () => cancelled, isCaught: () => isCaught };
}

test('a cancellation that does not get through ends no program: the driver tells nobody of it', async () => {
  const { statement, cancelled, isCaught } = underWay();
  const tx = Object.assign(() => statement, { unsafe: () => Promise.resolve([]) });
  const sql = { begin: (work: (tx: TransactionSql) => unknown) => work(tx as never) } as unknown as Sql;
  await transact(sql, async (guarded, under) => {
    const made = guarded`select pg_sleep(60)` as unknown as typeof statement & {
      readonly handler: (sent: unknown) => void;
    };
    made.handler(made);
    under.cancel();
    under.cancel();
    made.resolve([]);
    await made;
  });
  expect([cancelled(), isCaught()]).toEqual([1, true]);
});
