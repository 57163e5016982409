import { type Context, ROOT_CONTEXT, SpanKind, type Tracer } from '@opentelemetry/api';
import type { Telemetry } from 'bullmq';
import { BullMQOtel, BullMQOTelSpan } from 'bullmq-otel';
import { errorType } from './tracer.ts';

/** A span of BullMQ's; of an error it tells the kind, and not the message. */
class QueueSpan extends BullMQOTelSpan {
  override recordException(exception: Parameters<BullMQOTelSpan['recordException']>[0]): void {
    this.setAttribute('error.type', errorType(exception));
  }
}

/**
 * BullMQ's own instrumentation, for queues in Redis and in Postgres alike. Jobs carry no trace from one process to
 * another: the next job of a schedule is made while the one before is taken, so that all of them would be one trace
 * without an end.
 */
export function queueSpans(tracer: Tracer): Telemetry<Context> {
  const { contextManager } = new BullMQOtel();
  return {
    tracer: {
      // The kinds of both have the same numbers.
      startSpan: (name, options, parent) =>
        new QueueSpan(tracer.startSpan(name, { kind: options?.kind ?? SpanKind.INTERNAL }, parent)),
    },
    contextManager: {
      with: (context, work) => contextManager.with(context, work),
      active: () => contextManager.active(),
      root: () => ROOT_CONTEXT,
      getMetadata: () => '',
      fromMetadata: (context) => context,
    },
  };
}
