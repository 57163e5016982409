import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Ask,
  type Pooling,
  poolingProblem,
  readPooling,
  REJECTED_BY_POOLER,
} from '../../src/store/connection/pooler.ts';

const OK: Pooling = { kept: 'session', dropped: [], role: 'mirror', database: 'shop' };

interface PoolerOptions {
  readonly mode: 'session' | 'transaction' | 'statement';
  readonly processes: number;
  /** Which of the free processes is taken next. */
  readonly next: 'last used' | 'first used';
}

/** Simulates a pooler with so many processes of Postgres for two clients. Throws when a client would have to wait. */
function pooler({ mode, processes, next }: PoolerOptions): { idle: Ask; busy: Ask; free: number[] } {
  const free = Array.from({ length: processes }, (_, n) => n + 100);
  const client = (): Ask => {
    let own: number | undefined;
    let inTransaction = false;
    return async (statement) => {
      if (statement === 'begin' && mode === 'statement')
        throw Object.assign(new Error('not allowed'), { code: REJECTED_BY_POOLER });
      const process = (own ??= next === 'last used' ? free.pop() : free.shift());
      if (process === undefined) throw new Error('the client waits');
      inTransaction = statement === 'begin' || (inTransaction && statement !== 'rollback');
      if (mode !== 'session' && !inTransaction) {
        free.push(process);
        own = undefined;
      }
      if (statement.includes('pg_backend_pid')) return [{ process }];
      return statement.includes('session_user') ? [{ role: 'mirror', database: 'shop' }] : [];
    };
  };
  return { idle: client(), busy: client(), free };
}

const order = fc.constantFrom('last used' as const, 'first used' as const);

test('session mode is never taken for a transaction pooler', async () => {
  await fc.assert(
    fc.asyncProperty(order, async (next) => {
      const { idle, busy } = pooler({ mode: 'session', processes: 2, next });
      expect(await readPooling(idle, busy)).toEqual(OK);
    }),
  );
});

test('transaction mode is detected with any number of processes, in any order, and nobody has to wait', async () => {
  await fc.assert(
    fc.asyncProperty(order, fc.integer({ min: 1, max: 30 }), async (next, processes) => {
      const { idle, busy, free } = pooler({ mode: 'transaction', processes, next });
      expect((await readPooling(idle, busy)).kept).toBe('transaction');
      expect(free).toHaveLength(processes);
    }),
  );
});

test('statement mode is detected by what it rejects; other errors are passed on', async () => {
  const { idle, busy } = pooler({ mode: 'statement', processes: 3, next: 'last used' });
  expect((await readPooling(idle, busy)).kept).toBe('statement');
  const lost = async () => Promise.reject(Object.assign(new Error('lost'), { code: 'ECONNRESET' }));
  await expect(readPooling(idle, lost)).rejects.toThrow('lost');
  const cancelled: Ask = async (statement) =>
    statement === 'begin' ? Promise.reject(Object.assign(new Error('cancelled'), { code: '57014' })) : [];
  await expect(readPooling(idle, cancelled)).rejects.toThrow('cancelled');
});

test('dropped settings are reported with the statements that set them, names quoted', () => {
  expect(poolingProblem(OK)).toBeNull();
  const dropped = [
    { name: 'search_path', value: 'pg_catalog' },
    { name: 'DateStyle', value: 'ISO, MDY' },
  ];
  expect(poolingProblem({ ...OK, role: 'my"role', dropped })).toMatchObject({
    kind: 'pooler-settings',
    what: expect.stringMatching(/: search_path, DateStyle$/) as string,
    hint: expect.stringContaining(
      `ALTER ROLE "my""role" IN DATABASE "shop" SET search_path = 'pg_catalog'; ALTER ROLE "my""role" IN DATABASE "shop" SET DateStyle = 'ISO, MDY'`,
    ) as string,
  });
  for (const kept of ['transaction', 'statement'] as const)
    expect(poolingProblem({ ...OK, kept, dropped })).toMatchObject({
      kind: 'pooler',
      what: expect.stringContaining(`in ${kept} mode`) as string,
    });
});
