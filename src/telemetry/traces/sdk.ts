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

/** What the part that uses OpenTelemetry offers to the rest. */
export interface Sdk {
  readonly tracer: Tracer;
  readonly queues: QueueTelemetry;
  readonly present: PresentSpan;
  readonly close: () => Promise<void>;
}

/** Longest time for sending the remaining spans at the end. */
const FLUSH_WITHIN_MS = 1500;

// There is one per process, however many daemons it runs.
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

interface SdkOptions {
  readonly config: TraceConfig;
  readonly url: string;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * Starts OpenTelemetry's SDK without its global tracer. Only the context, the diagnostic logger and the error handler
 * are global, one per process. Spans wait in a bounded queue and are sent in batches: a collector that is away or slow
 * costs spans, and nothing else.
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
  // The watched exporter logs what cannot be sent.
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
  // Each package has its own encoding, and only one of them is needed.
  const { OTLPTraceExporter } = await (protocol === 'http/json'
    ? import('@opentelemetry/exporter-trace-otlp-http')
    : import('@opentelemetry/exporter-trace-otlp-proto'));
  return new OTLPTraceExporter(options);
}

/** Returns the current headers, read again if they are in a file. */
function presentHeaders(source: SecretSource | null): Readonly<Record<string, string>> {
  if (source === null) return {};
  source.refresh();
  return parseHeaderPairs(source.read()) ?? {};
}

/**
 * Describes the sender. OTEL_RESOURCE_ATTRIBUTES takes precedence; over its service name, as the detector knows,
 * OTEL_SERVICE_NAME does.
 */
function resourceOf({ serviceName }: Config['traces'], mirror: string): Resource {
  return resourceFromAttributes({
    'service.name': serviceName,
    'service.version': VERSION,
    'host.name': hostname(),
    'process.pid': process.pid,
    'catalog_mirror.name': mirror,
  }).merge(detectResources({ detectors: [envDetector] }));
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

/** Log lines about sending spans. */
export interface ExportLines {
  readonly failed: (err: unknown, spans: number) => void;
  readonly worked: () => void;
  /** A message of the SDK. */
  readonly noise: (text: string) => void;
}

/** Creates log lines about spans that could not be sent and messages of the SDK; lasting ones are throttled. */
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
      // Numbers are replaced, because they are new each time.
      const { say, ...facts } = throttle.again('noise', text.replaceAll(/\d+/g, '#').slice(0, 200));
      throttled(log, 'warn', say, { event: 'library.noise', from: 'opentelemetry', text, ...facts });
    },
  };
}

/** Wraps an exporter to log its failures and recoveries. */
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
