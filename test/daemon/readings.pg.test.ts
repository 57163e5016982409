import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { healthOf } from '../support/health.ts';

const store = useStore();

test('concurrent requests share one reading, whose statements on the ledger end at the answer timeout', async () => {
  const health = healthOf(store.sql);
  const other = connect(store.url, { max: 2 });
  /** Returns how many sessions wait to read the ledger for health. */
  const reading = async () => {
    const [row] = await other<[{ sessions: number }]>`
      select count(*)::int as sessions from pg_stat_activity
      where datname = current_database() and state = 'active' and wait_event_type = 'Lock' and query ~ 'dueSeconds|from newest due'
        and pid <> pg_backend_pid()`;
    return row.sessions;
  };
  try {
    await other.begin(async (tx) => {
      await tx`lock table catalog_internal.due in access exclusive mode`;
      const asked = Promise.all([health.ready(), health.ready(), health.metrics(), health.read()]);
      await eventually(async () => expect(await reading()).toBeGreaterThan(0));
      expect(await reading()).toBe(1);
      expect((await asked)[0]).toMatchObject({ ok: false });
      // The ledger is still locked.
      await eventually(async () => expect(await reading()).toBe(0));
    });
  } finally {
    await other.end({ timeout: 2 });
  }
});
