import { createHealth, type HealthReader } from '../../src/daemon/health.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { settingsWith } from './settings.ts';

const SILENT = createLogger({ level: 'silent', secrets: () => [] });

/** Returns the health reader of a daemon on this database that reports nothing about itself. */
export function healthOf(sql: Sql, log = SILENT): HealthReader {
  return createHealth(
    {
      config: settingsWith(),
      sync: { sql, clock: systemClock },
      log,
      backend: { ping: () => Promise.resolve(), describe: () => '' },
      metrics: createMetrics({ version: '1' }),
      pause: { failure: () => null },
      clocks: { wrong: () => null, notPutRight: () => null },
      breaker: { explain: () => null },
    },
    { lastJobAt: () => null, silentMs: () => 0 },
  );
}
