import { hostname } from 'node:os';
import { context, diag, DiagLogLevel, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { setGlobalErrorHandler } from '@opentelemetry/core';
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
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Telemetry as QueueTelemetry } from 'bullmq';
import type { Config } from '../../config/config.ts';
import { parseHeaderPairs } from '../../config/header-pairs.ts';
import type { SecretSource } from '../../config/secrets.ts';
import { type Clock, within } from '../../lib/clock.ts';
import { mirrorName } from '../../lib/host-name.ts';
import type { Tracer } from '../../lib/tracer.ts';
import { VERSION } from '../../version.ts';
import type { Log } from '../log/logger.ts';
import type { PresentSpan } from '../log/trace-ids.ts';
import { exportLines, watched } from './export-lines.ts';
import { queueSpans } from './queue-spans.ts';
import { createTracer } from './tracer.ts';

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
