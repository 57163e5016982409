import { describe, expect, test } from 'vitest';
import { CallSteps, dueKey, dueOf, permitFacts } from '../../src/sync/traces.ts';
import { FREE_PERMIT } from '../support/unpaced.ts';

const NOW = Date.parse('2026-11-26T12:00:00Z');
const askedAt = new Date(NOW);
const due = (secondsAgo: number, reason: string) => ({ dueAt: new Date(NOW - secondsAgo * 1000), reason });

describe('the time since which a call is due', () => {
  test('is that of its oldest SKU, and comes with the reason', () => {
    const skus = [due(10, 'sweep'), due(300, 'new'), due(20, 'live')];
    expect(dueOf({ askedAt, skus })).toMatchObject({ forMs: 300_000, reason: 'new' });
  });

  test('is that of the first report if it answers one, whatever else has waited longer', () => {
    const skus = [due(86_400, 'sweep'), due(40, 'changed'), due(90, 'removed'), due(7, 'changed')];
    expect(dueOf({ askedAt, skus })).toMatchObject({ forMs: 90_000, reason: 'removed' });
  });

  test('is zero for SKUs that are asked early', () => {
    expect(dueOf({ askedAt, skus: [due(-60, 'sweep')] })).toMatchObject({ forMs: 0, reason: 'sweep' });
    expect(dueOf({ askedAt, skus: [] })).toEqual({ forMs: 0, reason: undefined, keys: [] });
  });

  test('comes with the keys of all due times, each once', () => {
    const at = (secondsAgo: number) => dueKey(new Date(NOW - secondsAgo * 1000));
    const { keys } = dueOf({ askedAt, skus: [due(5, 'new'), due(5, 'new'), due(9, 'changed')] });
    expect(keys).toEqual([at(5), at(9)]);
  });
});

test('a permit is traced with its wait, or with what it was put off by', () => {
  const permit = { ...FREE_PERMIT, waitedMs: 12.4 };
  expect(permitFacts('reprice', { kind: 'granted', permit, waited: true })).toEqual({
    'catalog_mirror.lane': 'reprice',
    'catalog_mirror.permit': 'granted',
    'catalog_mirror.waited_ms': 12,
  });
  expect(permitFacts('delta', { kind: 'wait', forMs: 5, because: 'silence' })).toEqual({
    'catalog_mirror.lane': 'delta',
    'catalog_mirror.permit': 'wait',
    'catalog_mirror.put_off': 'silence',
  });
});

test('steps are reported in order with their times, except those that throw', async () => {
  let now = 100;
  const steps = new CallSteps({ monotonic: () => now });
  const step = async (name: string, ms: number, result: number) =>
    await steps.time(
      name,
      async () => {
        now += ms;
        return result;
      },
      (got) => ({ got }),
    );
  expect(await step('plan', 5, 1)).toBe(1);
  await expect(
    steps.time('bad', async () => {
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  await step('claim', 7, 2);
  const told: unknown[] = [];
  steps.tell({ span: async () => null as never, remember() {}, past: (...step) => told.push(step) });
  expect(steps.began).toBe(100);
  expect(told).toEqual([
    ['plan', { got: 1 }, 100, 105],
    ['claim', { got: 2 }, 105, 112],
  ]);
});
