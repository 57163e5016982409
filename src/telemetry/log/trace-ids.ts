import type { Log } from './logger.ts';

/** The ids of the span that the caller is within; null where it is within none. */
export type PresentSpan = () => { readonly traceId: string; readonly spanId: string } | null;

/**
 * The same log; lines that are written within a span have `trace_id` and `span_id`, the names that collectors of logs
 * look for.
 */
export function withTraceIds(log: Log, present: PresentSpan): Log {
  const within = <L extends keyof Log>(level: L): Log[L] => {
    const write = log[level] as (fields: object, message?: string) => void;
    return (fields: object, message?: string) => {
      const span = present();
      if (span === null) return write(fields, message);
      write({ ...fields, trace_id: span.traceId, span_id: span.spanId }, message);
    };
  };
  return {
    debug: within('debug'),
    info: within('info'),
    warn: within('warn'),
    error: within('error'),
    fatal: within('fatal'),
  };
}
