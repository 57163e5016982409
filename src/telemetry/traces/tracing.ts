import type { Telemetry as QueueTelemetry } from 'bullmq';
import type { Config } from '../../config/config.ts';
import type { Clock } from '../../lib/clock.ts';
import { NO_TRACER, type Tracer } from '../../lib/tracer.ts';
import { type Log, withTraceIds } from '../log/logger.ts';
import type { TraceConfig } from './sdk.ts';

/** The traces of a daemon. */
export interface Tracing {
  readonly tracer: Tracer;
  /** What queues and workers are instrumented with; null: nothing. */
  readonly queues: QueueTelemetry | null;
  /** The same log, with the ids of the span that each line is written within. */
  readonly logOf: (log: Log) => Log;
  /** Sends what is left, and gives that up soon where the collector does not take it. Never rejects. */
  readonly close: () => Promise<void>;
}

const OFF: Tracing = { tracer: NO_TRACER, queues: null, logOf: (log) => log, close: async () => {} };

/** The URL that traces are sent to; null where there are to be none. */
export function traceUrl({ traces }: Pick<Config, 'traces'>): string | null {
  const { endpoint, url, disabled, exporter } = traces;
  if (disabled || exporter === 'none') return null;
  return url ?? (endpoint === null ? null : `${endpoint.replace(/\/+$/, '')}/v1/traces`);
}

/** Begins to trace where a collector is configured. Only then anything of OpenTelemetry is loaded. */
export async function openTracing(config: TraceConfig, log: Log, clock: Clock): Promise<Tracing> {
  const url = traceUrl(config);
  if (url === null) return OFF;
  const { startSdk } = await import('./sdk.ts');
  const { tracer, queues, present, close } = await startSdk({ config, url, log, clock });
  return { tracer, queues, logOf: (plain) => withTraceIds(plain, present), close };
}
