import type { Sql, TransactionSql } from 'postgres';
import { expect, test, vi } from 'vitest';
import { transact } from '../../src/client/transact.ts';

/** Returns a statement of the driver that is in flight, and whose cancellation fails by a reset connection. */
function underWay() {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const resets: ReturnType<typeof vi.spyOn>[] = [];
  const canceller = () => {
    const reset = Promise.reject(new Error('read ECONNRESET'));
    resets.push(vi.spyOn(reset, 'then'));
    return reset;
  };
  const statement = Object.assign(promise, {
    resolve,
    reject,
    canceller,
    handler: () => {},
    // Like the driver's: it returns no promise.
    cancel: () => void canceller(),
  });
  const isCaught = () =>
    resets.every(({ mock }) =>
      mock.calls.some((given: readonly unknown[]) => typeof given[1] === 'function'),
    );
  return { statement, cancelled: () => resets.length, isCaught };
}

test('a cancellation that fails does not end the program with an unhandled rejection', async () => {
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
