import { expect, test } from 'vitest';
import { createHealth } from '../../src/daemon/health.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { connect } from '../../src/store/connection/db.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();

test('many who ask at once make one reading, whose statements on the ledger end with the time for an answer', async () => {
  const health = createHealth(
    {
      config: settingsWith(),
      sync: { sql: store.sql, clock: systemClock },
      log: createLogger({ level: 'fatal', secrets: () => [], destination: { write: () => {} } }),
      backend: { ping: () => Promise.resolve(), describe: () => '' },
      metrics: createMetrics({ version: '1' }),
      pause: { failure: () => null },
      clocks: { wrong: () => null, notPutRight: () => null },
      breaker: { explain: () => null },
    },
    { lastJobAt: () => null, silentMs: () => 0 },
  );
  const other = connect(store.url, { max: 2 });
  /** Sessions that read the ledger for health, and get nowhere. */
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
      // The ledger is locked as before.
      await eventually(async () => expect(await reading()).toBe(0));
    });
  } finally {
    await other.end({ timeout: 2 });
  }
});
