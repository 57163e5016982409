import { expect, test } from 'vitest';
import { connect, leaveReadOnly } from '../../src/store/connection/db.ts';
import { eventually } from '../support/eventually.ts';
import { useStore } from './support.ts';

const store = useStore();
const SESSIONS = 3;

test('sessions that began read-only are dropped, and those that write are kept', async () => {
  const { sql: admin, url } = store;
  const name = new URL(url).pathname.slice(1);
  const pool = connect(() => url, { max: SESSIONS });
  /** Returns each session of the pool, and whether it is read-only. */
  const sessions = async () => {
    const all = Promise.withResolvers<void>();
    let waiting = SESSIONS;
    return await Promise.all(
      Array.from({ length: SESSIONS }, () =>
        pool.begin(async (tx) => {
          waiting -= 1;
          if (waiting === 0) all.resolve();
          await all.promise;
          const [row] = await tx<[{ pid: number; readOnly: string }]>`
            select pg_backend_pid() as pid, current_setting('transaction_read_only') as "readOnly"`;
          return row;
        }),
      ),
    );
  };
  const allAre = async (readOnly: string) =>
    (await sessions().catch(() => [])).filter((session) => session.readOnly === readOnly).length === SESSIONS;
  // A session that begins meanwhile is read-only too, unless a transaction asks for writes.
  const reset = () =>
    admin.begin('read write', (tx) =>
      tx.unsafe(`alter database "${name}" reset default_transaction_read_only`),
    );
  try {
    await admin.unsafe(`alter database "${name}" set default_transaction_read_only = on`);
    expect(await allAre('on')).toBe(true);
    await reset();
    expect(await allAre('on')).toBe(true);
    leaveReadOnly(pool);
    await eventually(() => allAre('off'), { what: 'new sessions' });
    const pids = async () => (await sessions()).map(({ pid }) => pid).toSorted((a, b) => a - b);
    const kept = await pids();
    leaveReadOnly(pool);
    expect(await pids()).toEqual(kept);
  } finally {
    await reset();
    await pool.end({ timeout: 2 });
  }
});
