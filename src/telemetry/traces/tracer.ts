import {
  type Attributes as OtelAttributes,
  context,
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span as OtelSpan,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer as OtelTracer,
} from '@opentelemetry/api';
import type { Telemetry } from 'bullmq';
import { BullMQOtel, BullMQOTelSpan } from 'bullmq-otel';
import type { Clock } from '../../lib/clock.ts';
import type { Attributes, Span, SpanOptions, Tracer } from '../../lib/tracer.ts';
import { sqlState } from '../../store/connection/sql-errors.ts';

/** How many spans later ones may link to. A report of the delta has one; each is remembered for a day and more. */
const MAX_REMEMBERED = 512;
/** The wall clock was set if its difference from the monotonic one has changed by more than this. */
const WAS_SET_MS = 5;
/** A call may contain SKUs of many reports. */
const MAX_LINKS = 8;

const KINDS = { client: SpanKind.CLIENT, producer: SpanKind.PRODUCER } as const;
const kindOf = (kind: SpanOptions['kind']) => (kind === undefined ? SpanKind.INTERNAL : KINDS[kind]);

/** Creates a tracer whose spans are OpenTelemetry's. */
export function createTracer(otel: OtelTracer, clock: Clock): Tracer {
  const remembered = new Remembered();
  let offset = clock.now() - clock.monotonic();

  /**
   * Converts a time of the monotonic clock to the wall clock. The offset changes only if the wall clock was set, so
   * that neighbours keep their order although the wall clock counts whole milliseconds.
   */
  function timeOf(monotonic: number): number {
    const present = clock.now() - clock.monotonic();
    if (Math.abs(present - offset) > WAS_SET_MS) offset = present;
    return offset + monotonic;
  }

  function begin(name: string, attributes: Attributes, options: SpanOptions): OtelSpan {
    const { kind, traceFrom, links: keys = [] } = options;
    const around = trace.getSpanContext(context.active());
    const isRoot = traceFrom !== undefined;
    const links: Link[] = [
      ...(isRoot && around !== undefined ? [{ context: around }] : []),
      ...remembered.of(keys).map((linked) => ({ context: linked })),
    ];
    return otel.startSpan(
      name,
      {
        kind: kindOf(kind),
        attributes: known(attributes),
        ...(links.length > 0 && { links }),
        ...(isRoot && { startTime: timeOf(traceFrom) }),
      },
      isRoot ? ROOT_CONTEXT : context.active(),
    );
  }

  return {
    async span(name, attributes, work, options = {}) {
      const span = begin(name, attributes, options);
      try {
        return await context.with(trace.setSpan(context.active(), span), () => work(shown(span)));
      } catch (error) {
        fail(span, errorType(error));
        throw error;
      } finally {
        span.end();
      }
    },
    past(name, attributes, from, to, kind) {
      const options = { kind: kindOf(kind), attributes: known(attributes), startTime: timeOf(from) };
      otel.startSpan(name, options).end(timeOf(to));
    },
    remember(keys) {
      const present = trace.getSpanContext(context.active());
      if (present !== undefined) remembered.add(keys, present);
    },
  };
}

const shown = (span: OtelSpan): Span => ({
  set: (attributes) => void span.setAttributes(known(attributes)),
  fail: (kind) => fail(span, kind),
});

function fail(span: OtelSpan, kind: string): void {
  span.setAttribute('error.type', kind).setStatus({ code: SpanStatusCode.ERROR });
}

/** Returns an error's kind, SQLSTATE or class: never its message, which may contain values and secrets. */
export function errorType(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  if ('kind' in error && typeof error.kind === 'string') return error.kind;
  return sqlState(error) ?? error.name;
}

function known(attributes: Attributes): OtelAttributes {
  const found: OtelAttributes = {};
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) found[name] = value;
  return found;
}

/** The spans remembered last, by key. */
class Remembered {
  readonly #spans = new Map<string, SpanContext>();

  add(keys: readonly string[], span: SpanContext): void {
    for (const key of keys) {
      this.#spans.delete(key);
      this.#spans.set(key, span);
    }
    for (const key of this.#spans.keys()) {
      if (this.#spans.size <= MAX_REMEMBERED) return;
      this.#spans.delete(key);
    }
  }

  /** Returns each span once. */
  of(keys: readonly string[]): SpanContext[] {
    const found = keys.flatMap((key) => this.#spans.get(key) ?? []);
    return [...new Map(found.map((span) => [span.spanId, span])).values()].slice(0, MAX_LINKS);
  }
}

/** A span of BullMQ that records an error's kind instead of its message. */
class QueueSpan extends BullMQOTelSpan {
  override recordException(exception: Parameters<BullMQOTelSpan['recordException']>[0]): void {
    this.setAttribute('error.type', errorType(exception));
  }
}

/**
 * Adapts BullMQ's own instrumentation, for queues in Redis and in Postgres alike. Jobs carry no trace from one process
 * to another: the next job of a schedule is created while the previous one is taken, so all of them would be one
 * endless trace.
 */
export function queueSpans(tracer: OtelTracer): Telemetry<Context> {
  const { contextManager } = new BullMQOtel();
  return {
    tracer: {
      // Both number their kinds alike.
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
