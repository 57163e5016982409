import type { Telemetry as QueueTelemetry } from 'bullmq';
import type { Config } from '../../config/config.ts';
import type { Clock } from '../../lib/clock.ts';
import { NO_TRACER, type Tracer } from '../../lib/tracer.ts';
import { type Log, withTraceIds } from '../log/logger.ts';
import type { TraceConfig } from './sdk.ts';

/** The traces of a daemon. */
export interface Tracing {
  readonly tracer: Tracer;
  /** The instrumentation of queues and workers; null: none. */
  readonly queues: QueueTelemetry | null;
  /** Wraps a log: each line gets the ids of the span that it is written within. */
  readonly logOf: (log: Log) => Log;
  /** Sends what is left, but soon gives up if the collector does not take it. Never rejects. */
  readonly close: () => Promise<void>;
}

const OFF: Tracing = { tracer: NO_TRACER, queues: null, logOf: (log) => log, close: async () => {} };

/** Returns the URL that traces are sent to, or null if none are to be sent. */
export function traceUrl({ traces }: Pick<Config, 'traces'>): string | null {
  const { endpoint, url, disabled, exporter } = traces;
  if (disabled || exporter === 'none') return null;
  return url ?? (endpoint === null ? null : `${endpoint.replace(/\/+$/, '')}/v1/traces`);
}

/** Starts tracing if a collector is configured. Only then is anything of OpenTelemetry loaded. */
export async function openTracing(config: TraceConfig, log: Log, clock: Clock): Promise<Tracing> {
  const url = traceUrl(config);
  if (url === null) return OFF;
  const { startSdk } = await import('./sdk.ts');
  const { tracer, queues, present, close } = await startSdk({ config, url, log, clock });
  return { tracer, queues, logOf: (plain) => withTraceIds(plain, present), close };
}
