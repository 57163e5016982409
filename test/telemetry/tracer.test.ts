import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createTracer, errorType } from '../../src/telemetry/traces/tracer.ts';

const SECOND_NS = 1_000_000_000n;
let mono = 5000;
const clock = {
  now: () => Date.parse('2026-11-26T12:00:00Z') + mono,
  monotonic: () => mono,
  sleep: async () => {},
};

const exporter = new InMemorySpanExporter();
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
const tracer = createTracer(provider.getTracer('test'), clock);

const manager = new AsyncLocalStorageContextManager().enable();
beforeAll(() => void context.setGlobalContextManager(manager));
afterAll(() => context.disable());
beforeEach(() => {
  exporter.reset();
  mono = 5000;
});

const spans = () => new Map(exporter.getFinishedSpans().map((span) => [span.name, span]));
const ns = ([seconds, nanos]: readonly [number, number]) => BigInt(seconds) * SECOND_NS + BigInt(nanos);

test('a span that starts within another is its child, even after an await or next to a sibling', async () => {
  await tracer.span('whole', { skus: 3, none: undefined }, async (span) => {
    await Promise.all(
      ['a', 'b'].map((name) =>
        tracer.span(name, {}, async () => {
          await new Promise(setImmediate);
          tracer.past(`past ${name}`, {}, 1000, 2000);
        }),
      ),
    );
    span.set({ done: true, left: undefined });
  });
  const all = spans();
  const [whole, a, b] = ['whole', 'a', 'b'].map((name) => all.get(name));
  expect(whole?.attributes).toEqual({ skus: 3, done: true });
  expect(whole?.parentSpanContext).toBeUndefined();
  for (const part of [a, b]) expect(part?.parentSpanContext?.spanId).toBe(whole?.spanContext().spanId);
  expect(all.get('past a')?.parentSpanContext?.spanId).toBe(a?.spanContext().spanId);
  expect(all.get('past b')?.parentSpanContext?.spanId).toBe(b?.spanContext().spanId);
  expect(ns(all.get('past a')?.endTime ?? [0, 0]) - ns(all.get('past a')?.startTime ?? [0, 0])).toBe(
    SECOND_NS,
  );
});

test('a separate trace starts at the given time, and links to the span it started in', async () => {
  await tracer.span('job', {}, async () => {
    await tracer.span('call', {}, async () => tracer.past('part', {}, 3000, 4000), { traceFrom: 2000 });
    await tracer.span('after', {}, async () => {});
  });
  const all = spans();
  const [job, call] = [all.get('job'), all.get('call')];
  expect(call?.parentSpanContext).toBeUndefined();
  expect(call?.spanContext().traceId).not.toBe(job?.spanContext().traceId);
  expect(call?.links.map((link) => link.context.spanId)).toEqual([job?.spanContext().spanId]);
  expect(ns(call?.startTime ?? [0, 0])).toBe(BigInt(Date.parse('2026-11-26T12:00:02Z')) * 1_000_000n);
  expect(all.get('part')?.spanContext().traceId).toBe(call?.spanContext().traceId);
  expect(all.get('after')?.parentSpanContext?.spanId).toBe(job?.spanContext().spanId);
});

describe('links to remembered spans', () => {
  const remember = (...keys: string[]) => tracer.span(`of ${keys[0]}`, {}, async () => tracer.remember(keys));
  const linksOf = async (...links: string[]) => {
    await tracer.span('linked', {}, async () => {}, { traceFrom: mono, links });
    return exporter
      .getFinishedSpans()
      .findLast(({ name }) => name === 'linked')
      ?.links.map((link) => link.context.spanId);
  };

  test('appear once per span, by any of its keys, and to the latest span of a key', async () => {
    await remember('x');
    await remember('a', 'b');
    await remember('x', 'c');
    const idOf = (name: string, nth: number) =>
      exporter
        .getFinishedSpans()
        .filter((span) => span.name === name)
        .at(nth)
        ?.spanContext().spanId;
    expect(await linksOf('a', 'b', 'unknown')).toEqual([idOf('of a', 0)]);
    expect(await linksOf('x')).toEqual([idOf('of x', -1)]);
  });

  test('cover the last few hundred keys, and at most eight spans', async () => {
    for (let i = 0; i < 600; i += 1) await remember(`n${i}`);
    expect(await linksOf('n0', 'n80')).toEqual([]);
    expect(await linksOf('n599', 'n100')).toHaveLength(2);
    expect(await linksOf(...Array.from({ length: 100 }, (_, i) => `n${500 + i}`))).toHaveLength(8);
  });
});

test('an error fails its span with its kind but not its message, and is rethrown', async () => {
  const error = Object.assign(new Error('hunter2 in the message'), { kind: 'timeout' });
  await expect(
    tracer.span('bad', {}, async () => {
      throw error;
    }),
  ).rejects.toBe(error);
  await tracer.span('said', {}, async (span) => span.fail('23505'));
  const all = spans();
  expect(all.get('bad')).toMatchObject({
    attributes: { 'error.type': 'timeout' },
    status: { code: 2 },
    events: [],
  });
  expect(all.get('said')).toMatchObject({ attributes: { 'error.type': '23505' }, status: { code: 2 } });
  expect(
    JSON.stringify([...all.values()].map(({ attributes, status }) => [attributes, status])),
  ).not.toContain('hunter2');
});

test.each([
  [Object.assign(new Error(''), { kind: 'away' }), 'away'],
  [Object.assign(new Error(''), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [new TypeError('text'), 'TypeError'],
  ['text', 'string'],
  [undefined, 'undefined'],
])('an error type is the kind, code or class of the error: %s', (error, type) => {
  expect(errorType(error)).toBe(type);
});

test('without traces the work starts at once, and nothing is recorded', async () => {
  let begun = false;
  const done = NO_TRACER.span('x', {}, async (span) => {
    begun = true;
    span.set({ a: 1 });
    span.fail('no');
    return 7;
  });
  expect(begun).toBe(true);
  expect(await done).toBe(7);
  NO_TRACER.past('x', {}, 0, 1);
  NO_TRACER.remember(['x']);
});

test('with traces the work starts at once, too', () => {
  let begun = false;
  void tracer.span('x', {}, async () => {
    begun = true;
  });
  expect(begun).toBe(true);
});
