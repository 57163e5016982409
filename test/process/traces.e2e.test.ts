import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/net.ts';
import { startReceiver } from '../support/otlp-receiver.ts';
import { expectStopped, FILLED, holds, type Program, runProgram, startProgram } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';

/** Prints to stderr each OpenTelemetry package that is loaded, and which package loads it. */
const SPY = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  const packageOf = (url) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url ?? '')?.[1] ?? 'catalog-mirror';
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      const name = packageOf(found.url);
      const by = packageOf(context.parentURL);
      if (/opentelemetry|otel/.test(name) && by !== name) process.stderr.write('LOADED ' + name + ' BY ' + by + '\\n');
      return found;
    },
  });
`)}`;

const loadedIn = (stderr: string) =>
  new Set(stderr.split('\n').flatMap((line) => /^LOADED (.*)$/.exec(line)?.[1] ?? []));

describe('a daemon', () => {
  test.each(backends())(
    'loads no OpenTelemetry of its own without an endpoint, queues in %s',
    async (backend) => {
      await using stack = await createStack({ backend, sandbox: { skus: 20 } });
      const ran = await runProgram(['run', '--once'], stack.env, { preload: SPY });
      expect(ran.code).toBe(0);
      // Only the interface, which prom-client loads with or without traces.
      expect([...loadedIn(ran.stderr)]).toEqual(['@opentelemetry/api BY prom-client']);
    },
  );

  test('loads the SDK and the requested encoding with an endpoint', async () => {
    await using receiver = await startReceiver();
    await using stack = await createStack({ sandbox: { skus: 20 } });
    const env = {
      ...stack.env,
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    };
    const ran = await runProgram(['run', '--once'], env, { preload: SPY });
    expect(ran.code).toBe(0);
    const loaded = [...loadedIn(ran.stderr)];
    expect(loaded).toContain('@opentelemetry/sdk-trace BY catalog-mirror');
    expect(loaded).toContain('@opentelemetry/exporter-trace-otlp-http BY catalog-mirror');
    expect(loaded.filter((line) => /otlp-proto |sdk-node|grpc/.test(line))).toEqual([]);
    // What was left at the end was sent, too.
    expect(receiver.spans.map(({ name }) => name)).toContain('notify');
  });
});

/** Returns the warnings about sending spans. */
const alarms = (program: Program) =>
  [...program.logged('traces.failed'), ...program.logged('library.noise')].filter(
    ({ level }) => level === 'warn',
  );

describe('a collector that', () => {
  const env = {
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_TIMEOUT: '300',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20canary-of-headers',
    LOG_LEVEL: 'debug',
  };

  test.each([
    ['hangs', 'traces.failed', 'Request timed out'],
    ['refuses', 'traces.failed', 'Unauthorized'],
    ['garbage', 'library.noise', null],
  ] as const)(
    '%s blocks nothing: there is one warning, and the stop is in time',
    async (manner, event, message) => {
      await using receiver = await startReceiver(manner);
      await using stack = await createStack({ sandbox: { skus: 200, seed: 2202 } });
      await using daemon = startProgram(['run'], {
        ...stack.env,
        ...env,
        // On a busy machine even an answer may take as long as the short timeout.
        ...(manner === 'hangs' ? {} : { OTEL_EXPORTER_OTLP_TIMEOUT: '10000' }),
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      });
      await eventually(() => holds(stack.sql, FILLED), { what: 'a fill' });
      const line = await daemon.until(event);
      if (message !== null)
        expect(line).toMatchObject({
          level: 'warn',
          err: { message },
          lostSpans: expect.any(Number) as unknown,
        });
      // Repetitions are logged only at debug.
      await eventually(() => expect(daemon.logged(event).length).toBeGreaterThan(3));
      expect(alarms(daemon)).toHaveLength(1);
      expectStopped(await daemon.end('SIGTERM'));
      expect(daemon.stdout.join('\n')).not.toContain('canary-of-headers');
      expect(daemon.stderr).toEqual([]);
    },
  );

  test('is down and comes up is logged once each', async () => {
    await using stack = await createStack({ sandbox: { skus: 50, seed: 2203 } });
    const port = await freePort();
    await using daemon = startProgram(['run'], {
      ...stack.env,
      ...env,
      // As above: once it is up, none of its answers may be late.
      OTEL_EXPORTER_OTLP_TIMEOUT: '10000',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    });
    const line = await daemon.until('traces.failed');
    expect(line).toMatchObject({ level: 'warn', err: { code: 'ECONNREFUSED' } });
    await using receiver = await startReceiver('takes', port);
    await daemon.until('traces.recovered');
    await eventually(() => expect(receiver.spans.length).toBeGreaterThan(0));
    expect(alarms(daemon)).toHaveLength(1);
    expectStopped(await daemon.end('SIGTERM'));
  });
});
