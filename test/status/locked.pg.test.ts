import { afterAll, beforeAll, expect, test } from 'vitest';
import { readSnapshot } from '../../src/cli/status.ts';
import { loadConfig } from '../../src/config/config.ts';
import type { Health } from '../../src/status/health.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { countCatalog } from '../../src/store/status/counts-reader.ts';
import { readLockHolders } from '../../src/store/status/holders.ts';
import { useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { healthOf } from '../support/health.ts';

const CONFIG = loadConfig({ DATABASE_URL: 'postgres://unused' }, () => '', { need: 'database' });
const store = useStore();
let sessions: Sql[];
beforeAll(() => {
  sessions = ['instance', 'status', 'worker', 'pricing-tool'].map((name) =>
    connect(store.url, { max: 1, name: name === 'pricing-tool' ? name : `catalog-mirror ${name}` }),
  );
});
afterAll(() => Promise.all(sessions.map((session) => session.end({ timeout: 1 }))));

/*
 * If another session has locked a table that is read only for the figures, the command still judges the mirror,
 * just as a daemon does.
 */

const saidOf = ({ state, reasons }: Health) => ({ state, codes: reasons.map(({ code }) => code) });

test.each([
  ['catalog.skus', 'counted'],
  ['catalog_internal.live_rates', 'counted'],
  ['catalog_internal.calibration_hours', 'read for the figures'],
  ['catalog_internal.followers', 'read for the figures'],
])(
  'while another session has locked %s, which is %s, the command reports the same as a daemon',
  async (table, what) => {
    const [presence, command, worker, neighbour] = sessions as [Sql, Sql, Sql, Sql];
    await presence`
    insert into catalog_internal.instances
    select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
    await store.sql`
    update catalog_internal.sync set snapshot_id = 's', snapshot_generated_at = now(), manifest_applied_at = now(), delta_checked_at = now()`;
    await countCatalog(store.sql);
    // A command would wait for 20 s otherwise.
    await command`set lock_timeout = '1500ms'`;
    const waiting: PromiseLike<unknown>[] = [];
    await neighbour.begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx.unsafe(`lock table ${table} in access exclusive mode`);
      // Ends with the lock.
      waiting.push(worker.unsafe(`select from ${table} limit 1`).execute());
      await eventually(async () => expect(await readLockHolders(store.sql)).toHaveLength(1));
      const daemon = saidOf((await healthOf(store.sql).read()).health);
      expect(daemon).toMatchObject({ state: 'degraded', codes: expect.arrayContaining(['locked']) });
      const { health, status } = await readSnapshot(command, CONFIG, 'now', null);
      expect(saidOf(health)).toEqual(daemon);
      expect(status !== null).toBe(what === 'counted');
    });
    await Promise.all(waiting);
  },
);
