import { hostname } from 'node:os';
import { context, diag, DiagLogLevel, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { ExportResultCode, setGlobalErrorHandler } from '@opentelemetry/core';
import {
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Telemetry as QueueTelemetry } from 'bullmq';
import type { Config } from '../../config/config.ts';
import { parseHeaderPairs } from '../../config/environment.ts';
import type { SecretSource } from '../../config/secrets.ts';
import { type Clock, within } from '../../lib/clock.ts';
import { mirrorName } from '../../lib/host-name.ts';
import type { Tracer } from '../../lib/tracer.ts';
import { VERSION } from '../../version.ts';
import { type Log, type PresentSpan, throttled } from '../log/logger.ts';
import { createLogThrottle } from '../log/throttle.ts';
import { createTracer, errorType, queueSpans } from './tracer.ts';

export type TraceConfig = Pick<Config, 'traces' | 'log'>;

/** What OpenTelemetry's part of this gives to the rest. */
export interface Sdk {
  readonly tracer: Tracer;
  readonly queues: QueueTelemetry;
  readonly present: PresentSpan;
  readonly close: () => Promise<void>;
}

/** Longest time at the end for sending the spans that are left. */
const FLUSH_WITHIN_MS = 1500;

// There is one a process, however many daemons that runs.
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

interface SdkOptions {
  readonly config: TraceConfig;
  readonly url: string;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * OpenTelemetry's SDK, put together without its globals but for the context, of which there is one a process. Spans
 * wait in a queue of bounded length and are sent in batches: a collector that is away or slow costs spans, and
 * nothing else.
 */
export async function startSdk({ config, url, log, clock }: SdkOptions): Promise<Sdk> {
  const { traces } = config;
  const lines = exportLines(log, clock);
  const ignore = () => {};
  const noise = (text: string) => lines.noise(text);
  diag.setLogger(
    { error: noise, warn: noise, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  // What fails to be sent is logged by the watched exporter.
  setGlobalErrorHandler(ignore);
  const processor = new BatchSpanProcessor({
    exporter: watched(await openExporter(traces, url), lines),
    scheduledDelayMillis: traces.delayMs,
    maxQueueSize: traces.queueSize,
  });
  const provider = new TracerProvider({
    resource: resourceOf(traces, mirrorName(config.log.mirrorName)),
    sampler: samplerOf(traces),
    spanProcessors: [processor],
  });
  const otel = provider.getTracer('catalog-mirror', VERSION);
  return {
    tracer: createTracer(otel, clock),
    queues: queueSpans(provider.getTracer('bullmq')),
    present: () => trace.getSpanContext(context.active()) ?? null,
    close: () => within(provider.shutdown(), FLUSH_WITHIN_MS).catch(ignore),
  };
}

async function openExporter(
  { protocol, headers, ownHeaders }: Config['traces'],
  url: string,
): Promise<SpanExporter> {
  const options = {
    url,
    userAgent: `catalog-mirror/${VERSION}`,
    headers: async () => ({ ...presentHeaders(headers), ...presentHeaders(ownHeaders) }),
  };
  // Each has its own encoding; only one of them is needed.
  const { OTLPTraceExporter } = await (protocol === 'http/json'
    ? import('@opentelemetry/exporter-trace-otlp-http')
    : import('@opentelemetry/exporter-trace-otlp-proto'));
  return new OTLPTraceExporter(options);
}

/** As their file has them now, where they are in one. */
function presentHeaders(source: SecretSource | null): Readonly<Record<string, string>> {
  if (source === null) return {};
  source.refresh();
  return parseHeaderPairs(source.read()) ?? {};
}

/** OTEL_RESOURCE_ATTRIBUTES and who sends: what the former names, too, is as it says. */
function resourceOf({ serviceName }: Config['traces'], mirror: string): Resource {
  return resourceFromAttributes({
    'service.version': VERSION,
    'host.name': hostname(),
    'process.pid': process.pid,
    'catalog_mirror.name': mirror,
  })
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(resourceFromAttributes({ 'service.name': serviceName }));
}

function samplerOf({ sampler, ratio }: Config['traces']): Sampler {
  const roots = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  const name = sampler.replace('parentbased_', '') as keyof typeof roots;
  const root = roots[name]();
  return name === sampler ? root : new ParentBasedSampler({ root });
}

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
function watched(exporter: SpanExporter, lines: ExportLines): SpanExporter {
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
