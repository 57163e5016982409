import type { Config } from '../config/config.ts';
import type { Clock } from '../lib/clock.ts';
import type { CircuitBreaker } from '../pace/circuit-breaker.ts';
import type { QueueBackend } from '../queues/backend.ts';
import type { StorePause } from '../queues/store-pause.ts';
import type { SyncContext } from '../sync/context.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { Problem } from '../telemetry/log/problems.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { ClockWatch } from './clock-watch.ts';
import type { NamesKept } from './learned-names.ts';

/** The parts of a daemon, in the order in which they are created. */
export interface Parts {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly problems: () => readonly Problem[];
  readonly metrics: Metrics;
  readonly telemetry: Telemetry;
  readonly pause: StorePause;
  readonly backend: QueueBackend;
  readonly breaker: CircuitBreaker;
  readonly clocks: ClockWatch;
  readonly names: NamesKept;
  readonly sync: SyncContext;
}
