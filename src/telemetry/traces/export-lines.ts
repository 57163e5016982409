import { ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../lib/clock.ts';
import { type Log, throttled } from '../log/logger.ts';
import { createLogThrottle } from '../log/throttle.ts';
import { errorType } from './tracer.ts';

/** Log lines of the sending of spans. */
export interface ExportLines {
  readonly failed: (err: unknown, spans: number) => void;
  readonly worked: () => void;
  /** What the SDK has to say. */
  readonly noise: (text: string) => void;
}

/** Log lines about spans that could not be sent, and what the SDK says; those that last are throttled. */
export function exportLines(log: Log, clock: Clock): ExportLines {
  const throttle = createLogThrottle(clock);
  let lost = 0;
  return {
    failed(err, spans) {
      lost += spans;
      const { say, ...facts } = throttle.again('export', errorType(err));
      throttled(log, 'warn', say, { event: 'traces.failed', err, lostSpans: lost, ...facts });
      if (say) lost = 0;
    },
    worked() {
      const ended = throttle.over('export');
      if (ended?.say === true)
        log.info({ event: 'traces.recovered', times: ended.times, lastedSeconds: ended.lastedSeconds });
    },
    noise(text) {
      // Numbers in it count what is new each time.
      const { say, ...facts } = throttle.again('noise', text.replaceAll(/\d+/g, '#').slice(0, 200));
      throttled(log, 'warn', say, { event: 'library.noise', from: 'opentelemetry', text, ...facts });
    },
  };
}

/** An exporter that says how it gets on. */
export function watched(exporter: SpanExporter, lines: ExportLines): SpanExporter {
  return {
    export(spans: ReadableSpan[], done) {
      exporter.export(spans, (result) => {
        if (result.code === ExportResultCode.SUCCESS) lines.worked();
        else lines.failed(result.error ?? new Error('the collector did not take them'), spans.length);
        done(result);
      });
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}
