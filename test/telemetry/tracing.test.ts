import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test, vi } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { exportLines } from '../../src/telemetry/traces/sdk.ts';
import { openTracing, traceUrl } from '../../src/telemetry/traces/tracing.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/otlp-receiver.ts';
import { settingsWith, type SettingsEnv } from '../support/settings.ts';

const MB = 1024 ** 2;

function logged() {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    level: 'debug',
    secrets: () => [],
    destination: { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  return { log, lines };
}

test.each<[SettingsEnv, string | null]>([
  [{}, null],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' }, 'http://c:4318/v1/traces'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c/otlp/' }, 'https://c/otlp/v1/traces'],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://d/x' },
    'http://d/x',
  ],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://d/x' }, 'http://d/x'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_SDK_DISABLED: 'true' }, null],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_TRACES_EXPORTER: 'none' }, null],
])('%j sends traces to %s', (env, url) => {
  expect(traceUrl(settingsWith(env))).toBe(url);
});

test('a failing collector is logged with the spans lost since the last line, and when it works again', () => {
  const { log, lines } = logged();
  let at = 0;
  const tell = exportLines(log, { ...systemClock, now: () => at, monotonic: () => at });
  tell.worked();
  for (const spans of [3, 4, 5]) tell.failed(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }), spans);
  at += 3_600_000;
  tell.failed(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }), 6);
  tell.worked();
  tell.worked();
  expect(lines).toMatchObject([
    { level: 'warn', event: 'traces.failed', lostSpans: 3, times: 1 },
    { level: 'debug', lostSpans: 4, times: 2 },
    { level: 'debug', lostSpans: 9, times: 3 },
    { level: 'warn', event: 'traces.failed', lostSpans: 15, times: 4 },
    { level: 'info', event: 'traces.recovered', times: 4, lastedSeconds: 3600 },
  ]);
});

test('without traces there is no tracer, and the log is unchanged', async () => {
  const { log } = logged();
  const { tracer, queues, logOf } = await openTracing(settingsWith(), log, systemClock);
  expect([tracer === NO_TRACER, queues, logOf(log) === log]).toEqual([true, null, true]);
});

test('a collector that hangs costs spans, but no memory, and does not delay the shutdown', async () => {
  await using receiver = await startReceiver('hangs');
  const { log } = logged();
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_BSP_SCHEDULE_DELAY: '10',
    OTEL_BSP_MAX_QUEUE_SIZE: '200',
  };
  const { tracer, close } = await openTracing(settingsWith(env), log, systemClock);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 4000; i += 1) {
    // 50 kB each, 200 MB if they were kept.
    await tracer.span('large', { text: `${i}`.padEnd(25_000, 'é') }, async () => {});
    if (i % 100 === 0) await new Promise(setImmediate);
  }
  await eventually(() => expect(receiver.headers.length).toBeGreaterThan(0));
  collect();
  expect((process.memoryUsage().heapUsed - before) / MB).toBeLessThan(50);
  const from = performance.now();
  await close();
  expect(performance.now() - from).toBeLessThan(10_000);
});

test.each<[string, Record<string, string>, string]>([
  ['its default', {}, 'catalog-mirror'],
  ['that of OTEL_RESOURCE_ATTRIBUTES', { OTEL_RESOURCE_ATTRIBUTES: 'service.name=shop' }, 'shop'],
  [
    'that of OTEL_SERVICE_NAME, if both are set',
    { OTEL_RESOURCE_ATTRIBUTES: 'service.name=shop', OTEL_SERVICE_NAME: 'prices' },
    'prices',
  ],
])('the service name is %s', async (_which, env, name) => {
  await using receiver = await startReceiver();
  for (const [variable, value] of Object.entries(env)) vi.stubEnv(variable, value);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const settings = settingsWith({
    ...env,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  });
  const { tracer, close } = await openTracing(settings, logged().log, systemClock);
  await tracer.span('one', {}, async () => {});
  await close();
  expect(receiver.spans[0]?.resource).toMatchObject({ 'service.name': name });
});

test('headers are read from their file at each export, and those for traces take precedence', async () => {
  await using receiver = await startReceiver();
  const { log } = logged();
  let file = 'api-key=first%2C%20one,x-team=prices\n';
  const config = loadConfig(
    {
      PARTNER_BASE_URL: 'https://partner.example',
      PARTNER_API_KEY: 'key',
      PARTNER_SECRET: 'secret',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS_FILE: '/run/secrets/headers',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-team=traces',
      OTEL_BSP_SCHEDULE_DELAY: '10',
    },
    () => file,
  );
  const { tracer, close } = await openTracing(config, log, systemClock);
  await tracer.span('one', {}, async () => {});
  await eventually(() => expect(receiver.headers).toHaveLength(1));
  file = 'api-key=second-value';
  await tracer.span('two', {}, async () => {});
  await close();
  expect(receiver.headers).toMatchObject([
    { 'api-key': 'first, one', 'x-team': 'traces' },
    { 'api-key': 'second-value', 'x-team': 'traces' },
  ]);
  expect(receiver.spans.map(({ name }) => name)).toEqual(['one', 'two']);
  expect(config.secrets()).toEqual(expect.arrayContaining(['first, one', 'second-value']));
});

test('spans are sent as Protobuf by default', async () => {
  await using receiver = await startReceiver();
  const { log } = logged();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  const { tracer, close } = await openTracing(settingsWith(env), log, systemClock);
  await tracer.span('one', {}, async () => {});
  await close();
  expect(receiver.headers).toMatchObject([{ 'content-type': 'application/x-protobuf' }]);
});

test('log lines within a span carry its ids, and others none', async () => {
  await using receiver = await startReceiver();
  const { log, lines } = logged();
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  } as const;
  const { tracer, logOf, close } = await openTracing(settingsWith(env), log, systemClock);
  const traced = logOf(log);
  traced.info({ event: 'credential.changed' });
  await tracer.span('one', {}, async () => {
    await new Promise(setImmediate);
    traced.warn({ event: 'app.dispose-failed', err: new Error('x') }, 'text');
  });
  await close();
  const [span] = receiver.spans;
  expect(lines[0]).not.toHaveProperty('trace_id');
  expect(lines[1]).toMatchObject({
    msg: 'text',
    trace_id: span?.traceId,
    span_id: span?.spanId,
    err: { message: 'x' },
  });
});
