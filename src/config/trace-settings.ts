import { choice, either, headerPairs, integer, label, otlpEndpoint, ratio } from './rules.ts';
import type { Setting } from './setting.ts';

/** Traces, by the names that OpenTelemetry gives them. What else it knows (docs/traces.md) its own library reads. */
export const TRACE_SETTINGS = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    path: 'traces.endpoint',
    rule: otlpEndpoint(),
    unset: 'no traces',
    meaning:
      'OTLP/HTTP endpoint of a collector, such as `http://collector:4318`, to which traces are sent ' +
      '(`/v1/traces` is appended); unset, nothing of OpenTelemetry is loaded. See docs/traces.md',
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    path: 'traces.url',
    rule: otlpEndpoint(),
    unset: 'made of OTEL_EXPORTER_OTLP_ENDPOINT',
    meaning: 'the whole URL for traces, to which nothing is appended; takes precedence',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    path: 'traces.headers',
    rule: headerPairs(),
    unset: 'none',
    secret: true,
    meaning:
      'headers for the collector, such as `authorization=Bearer%20…`, separated by commas, values ' +
      'percent-encoded. Values of eight characters and more never reach a log line. A file is read again when ' +
      'traces are sent',
  },
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: {
    path: 'traces.ownHeaders',
    rule: headerPairs(),
    unset: 'none',
    secret: true,
    meaning: 'further headers, for traces only; take precedence',
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    path: 'traces.protocol',
    rule: choice(['http/protobuf', 'http/json']),
    default: 'http/protobuf',
    meaning: 'how traces are encoded; gRPC is not spoken',
  },
  OTEL_SERVICE_NAME: {
    path: 'traces.serviceName',
    rule: label(255),
    default: 'catalog-mirror',
    meaning: '`service.name` of traces',
  },
  OTEL_TRACES_SAMPLER: {
    path: 'traces.sampler',
    rule: choice([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ]),
    default: 'parentbased_always_on',
    meaning: 'which traces are recorded',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    path: 'traces.ratio',
    rule: ratio(),
    default: '1',
    meaning: 'share of the traces that samplers by ratio record',
  },
  OTEL_TRACES_EXPORTER: {
    path: 'traces.exporter',
    rule: choice(['otlp', 'none']),
    default: 'otlp',
    meaning: '`none`: no traces, whatever the endpoint',
  },
  OTEL_SDK_DISABLED: {
    path: 'traces.disabled',
    rule: either('true', 'false'),
    default: 'false',
    meaning: '`true`: no traces, whatever the endpoint',
  },
  OTEL_BSP_SCHEDULE_DELAY: {
    path: 'traces.delayMs',
    rule: integer(1, 3_600_000),
    default: '5000',
    meaning: 'milliseconds for which spans are collected before they are sent',
  },
  OTEL_BSP_MAX_QUEUE_SIZE: {
    path: 'traces.queueSize',
    rule: integer(1, 100_000),
    default: '2048',
    meaning: 'spans that wait to be sent at most, a few kilobytes each; further ones are dropped',
  },
} as const satisfies Readonly<Record<string, Setting>>;
