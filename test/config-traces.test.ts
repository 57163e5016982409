import { describe, expect, test } from 'vitest';
import { loadConfig } from '../src/config/config.ts';
import { parseHeaderPairs } from '../src/config/environment.ts';
import { createScrubber } from '../src/telemetry/log/scrub.ts';

const CREDENTIAL = { PARTNER_BASE_URL: 'https://partner.example', PARTNER_API_KEY: 'k', PARTNER_SECRET: 's' };
const load = (env: Readonly<Record<string, string>>) => loadConfig({ ...CREDENTIAL, ...env }, () => '');

test('traces are off by default, with the standard defaults', () => {
  expect(load({}).traces).toEqual({
    endpoint: null,
    url: null,
    headers: null,
    ownHeaders: null,
    protocol: 'http/protobuf',
    serviceName: 'catalog-mirror',
    sampler: 'parentbased_always_on',
    ratio: 1,
    exporter: 'otlp',
    disabled: false,
    delayMs: 5000,
    queueSize: 2048,
  });
});

test.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://collector:4317'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:canary@collector'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector/?key=canary'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', '/v1/traces'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'canary'],
  ['OTEL_EXPORTER_OTLP_HEADERS', '=canary'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a b=canary'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=canary%0d%0aX: y'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=canary%zz'],
  ['OTEL_EXPORTER_OTLP_HEADERS', ','],
  ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
  ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
  ['OTEL_TRACES_SAMPLER_ARG', '-1'],
  ['OTEL_TRACES_EXPORTER', 'zipkin'],
  ['OTEL_SDK_DISABLED', 'yes'],
  ['OTEL_BSP_SCHEDULE_DELAY', '0'],
  ['OTEL_BSP_MAX_QUEUE_SIZE', 'many'],
])('%s=%s is rejected by name, without what may be a secret', (name, value) => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', [name]: value };
  expect(() => load(env)).toThrow(new RegExp(`\n${name}: expected `));
  expect(() => load(env)).not.toThrow(/canary/);
});

describe('OpenTelemetry variables set for other programs', () => {
  const OFF: Readonly<Record<string, string>>[] = [
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4317', OTEL_SDK_DISABLED: 'TRUE' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4317', OTEL_TRACES_EXPORTER: 'none' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'grpc://collector:4317', OTEL_SDK_DISABLED: 'true' },
  ];
  test.each(OFF)('do not prevent a start if no traces are sent: %j', (env) => {
    const { traces, warnings } = load({
      ...env,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_HEADERS: 'canary',
      OTEL_TRACES_SAMPLER: 'jaeger_remote',
    });
    expect(traces).toMatchObject({
      protocol: 'http/protobuf',
      headers: null,
      sampler: 'parentbased_always_on',
    });
    expect(
      warnings.filter((warning) => /^OTEL_.* is ignored, because no traces are sent$/.test(warning)),
    ).toHaveLength(env['OTEL_EXPORTER_OTLP_ENDPOINT']?.startsWith('grpc') === true ? 4 : 3);
    expect(warnings.join()).toContain(
      'OTEL_EXPORTER_OTLP_PROTOCOL: expected one of http/protobuf, http/json, got "grpc"',
    );
    expect(warnings.join()).not.toContain('canary');
  });

  test('disable traces in any letter case', () => {
    expect(load({ OTEL_SDK_DISABLED: 'True' })).toMatchObject({ traces: { disabled: true }, warnings: [] });
  });

  test('are ignored in both forms if both are set', () => {
    const name = 'OTEL_EXPORTER_OTLP_HEADERS';
    expect(load({ [name]: 'a=b', [`${name}_FILE`]: '/f' }).traces.headers).toBeNull();
  });
});

test('a sampling ratio may be 0 or 1', () => {
  expect(['0', '1', '0.01'].map((text) => load({ OTEL_TRACES_SAMPLER_ARG: text }).traces.ratio)).toEqual([
    0, 1, 0.01,
  ]);
});

test('headers are pairs with encoded values, and their names become lower case', () => {
  expect(parseHeaderPairs('Authorization=Basic%20YTpiPQ==, X-Tenant = t , ')).toEqual({
    authorization: 'Basic YTpiPQ==',
    'x-tenant': 't',
  });
});

test('values of headers are scrubbed from log lines, except very short ones', () => {
  const config = load({
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20hunter2-token,x-tenant=1',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'api-key=other%2Fcanary',
  });
  const scrub = createScrubber(config.secrets);
  expect(scrub.text('got hunter2-token and other/canary and other%2Fcanary in 11 of 21')).toBe(
    'got [redacted] and [redacted] and [redacted] in 11 of 21',
  );
});

test('other variables of OpenTelemetry are not reported as misspelt', () => {
  const { warnings } = load({
    OTEL_RESOURCE_ATTRIBUTES: 'a=b',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://c',
    OTEL_LOGS_EXPORTER: 'none',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_PROPAGATORS: 'tracecontext',
  });
  expect(warnings).toEqual([]);
});
