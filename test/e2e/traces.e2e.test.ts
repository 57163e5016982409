import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { nudge } from '../support/market.ts';
import { type OtlpReceiver, type SentSpan, startReceiver } from '../support/otlp-receiver.ts';
import { backends, type Backend, createStack, type Stack } from '../support/stack.ts';

const envOf = ({ url }: OtlpReceiver) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_BSP_SCHEDULE_DELAY: '50',
});

const named = ({ spans }: Pick<OtlpReceiver, 'spans'>, name: string) =>
  spans.filter((span) => span.name === name);

/** Returns the children of a span, ordered by start. */
const childrenOf = ({ spans }: OtlpReceiver, { spanId, traceId }: SentSpan) =>
  spans
    .filter((span) => span.parentSpanId === spanId && span.traceId === traceId)
    .toSorted((a, b) => a.from - b.from);

/** Fills a traced mirror, and moves a price that is then reported. */
async function movedOnce(stack: Stack): Promise<void> {
  const { world } = stack.sandbox;
  const app = await stack.start();
  await stack.caughtUp();
  const row = [...world.truth().values()].find(
    ({ listed, priceSource, sizeMap }) =>
      listed && priceSource === 'snapshot' && Object.keys(sizeMap).length > 0,
  );
  if (row === undefined) throw new Error('no SKU with a price');
  nudge(world, row);
  world.buildSnapshot();
  await stack.caughtUp();
  // All spans have been sent after this.
  await app.stop();
}

const stackOf = async (backend: Backend, receiver: OtlpReceiver, env = {}) =>
  await createStack({
    backend,
    sandbox: { skus: 40, seed: 2201, liveShare: 0.05, ghostShare: 0, noopShare: 0 },
    env: { ...envOf(receiver), ...env },
  });

describe.each(backends())('traces, queues in %s', (backend) => {
  test('follow a report from the delta to NOTIFY', async () => {
    await using receiver = await startReceiver();
    await using stack = await stackOf(backend, receiver);
    await movedOnce(stack);
    const changed = (span: SentSpan) =>
      span.name === 'reprice' && span.attributes['catalog_mirror.due.reason'] === 'changed';
    const call = await eventually(() => {
      const found = receiver.spans.find(changed);
      if (found === undefined) throw new Error('no such trace yet');
      return found;
    });
    const report = named(receiver, 'delta.apply').find(
      (span) => span.attributes['catalog_mirror.delta.changed'] === 1,
    );
    expect(report).toMatchObject({
      attributes: { 'catalog_mirror.delta.removed': 0, 'catalog_mirror.delta.new_skus': 0 },
    });

    // The root span covers everything since the report.
    expect(call.parentSpanId ?? '').toBe('');
    expect(call.links.map(({ spanId }) => spanId)).toContain(report?.spanId);
    expect(call.attributes).toMatchObject({ 'catalog_mirror.claim': expect.any(String) as unknown });
    const parts = childrenOf(receiver, call);
    expect(parts.map(({ name }) => name).filter((name) => name !== 'plan')).toEqual([
      'due',
      'pace.wait',
      'claim',
      'partner.call',
      'apply',
      'learn',
    ]);
    for (const part of parts) {
      expect(part.from).toBeGreaterThanOrEqual(call.from - 10);
      expect(part.to).toBeLessThanOrEqual(call.to + 10);
    }
    // Its SKU has been due since then. How long is known at the claim, and counted back from the claim's end.
    const claim = parts.find(({ name }) => name === 'claim') as SentSpan;
    expect(call.from).toBeGreaterThanOrEqual((report?.from ?? 0) - 10);
    expect(call.from).toBeLessThanOrEqual((report?.to ?? 0) + claim.to - claim.from + 100);
    const [, ...others] = parts.filter(({ name }) => name !== 'plan');
    const facts = Object.fromEntries(others.map(({ name, attributes }) => [name, attributes]));
    expect(facts['pace.wait']).toMatchObject({
      'catalog_mirror.lane': 'reprice',
      'catalog_mirror.permit': 'granted',
      'catalog_mirror.waited_ms': expect.any(Number) as unknown,
    });
    expect(facts['partner.call']).toMatchObject({
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'url.full': `${stack.sandbox.url}/partner/lowest/bulk`,
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(stack.sandbox.url).port),
      'catalog_mirror.skus.asked': call.attributes['catalog_mirror.skus.asked'],
      'catalog_mirror.skus.deferred': 0,
    });
    expect(facts['apply']).toMatchObject({
      'catalog_mirror.skus.accepted': call.attributes['catalog_mirror.skus.asked'],
      'catalog_mirror.price_changes': expect.any(Number) as unknown,
    });
    expect(Number(facts['apply']?.['catalog_mirror.price_changes'])).toBeGreaterThan(0);
    const apply = parts.find(({ name }) => name === 'apply');
    expect(childrenOf(receiver, apply as SentSpan).map(({ name }) => name)).toEqual(['compare', 'notify']);

    // The report belongs to a job of BullMQ.
    const task = receiver.spans.find(({ spanId }) => spanId === report?.parentSpanId);
    expect(task).toMatchObject({ name: 'delta', attributes: { 'catalog_mirror.outcome': 'done' } });
    const job = receiver.spans.find(({ spanId }) => spanId === task?.parentSpanId);
    expect(job).toMatchObject({
      name: 'process delta',
      attributes: { 'bullmq.queue.name': 'delta', 'bullmq.job.name': 'delta' },
    });
    const asked = childrenOf(receiver, task as SentSpan).map(({ name }) => name);
    expect(asked.slice(0, 3)).toEqual(['pace.wait', 'partner.call', 'delta.apply']);
    expect(named(receiver, 'add delta.delta').length).toBeGreaterThan(0);
    // A call starts in a job that continues with others, so it is linked to the job.
    const slice = receiver.spans.find(({ name, spanId }) =>
      call.links.some((link) => link.spanId === spanId && name === 'process reprice'),
    );
    expect(slice).toBeDefined();

    // Scheduled jobs, each of which creates the next, are not one endless trace.
    const jobs = receiver.spans.filter(({ name }) => name.startsWith('process '));
    expect(new Set(jobs.map(({ traceId }) => traceId)).size).toBe(jobs.length);

    // Log lines carry the span in which they were written.
    const line = stack.logs.find(({ event, changed: count }) => event === 'delta.applied' && count === 1);
    expect(line).toMatchObject({ trace_id: task?.traceId, span_id: task?.spanId });
    const request = stack.logs.find(
      ({ event, span_id }) =>
        event === 'partner.request' && span_id === parts.find(({ name }) => name === 'partner.call')?.spanId,
    );
    expect(request).toMatchObject({ route: 'bulk', trace_id: call.traceId });
    expect(stack.logs.find(({ event }) => event === 'app.started')).not.toHaveProperty('trace_id');
  });

  test('name the sender from the environment, send its headers, and contain no secret', async () => {
    await using receiver = await startReceiver();
    await using stack = await stackOf(backend, receiver, {
      OTEL_SERVICE_NAME: 'prices',
      MIRROR_NAME: 'staging',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20canary-in-header,x-tenant=1',
    });
    await movedOnce(stack);
    await eventually(() => expect(named(receiver, 'notify').length).toBeGreaterThan(0));
    expect(receiver.spans[0]?.resource).toMatchObject({
      'service.name': 'prices',
      'catalog_mirror.name': 'staging',
      'process.pid': process.pid,
    });
    expect(receiver.headers[0]).toMatchObject({
      authorization: 'Bearer canary-in-header',
      'x-tenant': '1',
    });
    const sent = receiver.bodies.join('\n');
    for (const secret of [stack.sandbox.secret, stack.sandbox.apiKey, 'canary-in-header', 'since='])
      expect(sent).not.toContain(secret);
    expect(JSON.stringify(stack.logs)).not.toContain('canary-in-header');
  });
});

test('a call that fails is a failed span with status and code', async () => {
  await using receiver = await startReceiver();
  await using stack = await stackOf('postgres', receiver);
  stack.sandbox.faults.add({ route: 'bulk', status: 500, times: 1 });
  await stack.start();
  await stack.caughtUp();
  const failed = await eventually(() => {
    const found = receiver.spans.find(({ name, failed: is }) => name === 'reprice' && is);
    if (found === undefined) throw new Error('none yet');
    return found;
  });
  const call = childrenOf(receiver, failed).find(({ name }) => name === 'partner.call');
  expect(call).toMatchObject({ failed: true, attributes: { 'http.response.status_code': 500 } });
  expect(call?.attributes['error.type']).toBe(failed.attributes['error.type']);
});

test.each([
  ['always_off', '1', false],
  ['parentbased_always_off', '1', false],
  ['traceidratio', '0', false],
  ['parentbased_traceidratio', '1', true],
] as const)('sampler %s of %s: traces are sent: %s', async (sampler, share, areSent) => {
  await using receiver = await startReceiver();
  await using stack = await stackOf('postgres', receiver, {
    OTEL_TRACES_SAMPLER: sampler,
    OTEL_TRACES_SAMPLER_ARG: share,
  });
  await movedOnce(stack);
  expect(receiver.spans.length > 0).toBe(areSent);
  // Lines still have ids that tie them together.
  expect(stack.logs.some((line) => 'trace_id' in line)).toBe(true);
});

test.each(['OTEL_SDK_DISABLED=true', 'OTEL_TRACES_EXPORTER=none'])('%s sends no traces', async (setting) => {
  const [name = '', value = ''] = setting.split('=');
  await using receiver = await startReceiver();
  await using stack = await stackOf('postgres', receiver, { [name]: value });
  await movedOnce(stack);
  expect(receiver.headers).toEqual([]);
  expect(stack.logs.some((line) => 'trace_id' in line)).toBe(false);
});
