import { describe, expect, test } from 'vitest';
import type { PriceDifference } from '../../src/store/answer/differences.ts';
import { type Differences, effectsOf } from '../../src/store/answer/effects.ts';
import type { LockedSku } from '../../src/store/answer/lock.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { NO_LEARNING, type SkuResult } from '../../src/store/answer/types.ts';
import { found } from './support.ts';

const row = (sku: string, other: Partial<LockedSku> = {}): LockedSku => ({
  sku,
  answerable: true,
  state: 'priced',
  live: false,
  seenBefore: true,
  listedSizes: null,
  reportedSeconds: null,
  promise: null,
  weight: 1,
  alpha: null,
  beta: null,
  minutes: 60,
  moved: false,
  standing: 'own',
  comparable: true,
  listedSnapshot: true,
  kept: null,
  keptOnce: false,
  missedMoves: null,
  listedLive: false,
  cohort: 'snapshot',
  pRight: null,
  sizePRight: null,
  random: false,
  priorMinutes: 30,
  doubt: null,
  oddity: null,
  doubtMinutes: null,
  believed: null,
  vanished: null,
  vanishedMinutes: null,
  reportedMinutes: null,
  ...other,
});
const answer = (sku: string, kind: 'record' | 'not_found' = 'record'): SkuResult =>
  kind === 'not_found' ? { sku, kind } : found(sku, {});
const price = (sku: string, how: PriceDifference['how'], from: number | null, to: number | null) => ({
  sku,
  size: '42',
  how,
  oldPrice: from,
  newPrice: to,
  entry: null,
});
const differences = (prices: readonly PriceDifference[], unknown: readonly string[] = []): Differences => ({
  prices,
  products: { fields: [], members: new Map(), unknown },
});

const KNOWN = {
  muted: new Set<string>(),
  massMove: { since: null, usual: null, kind: null, factor: null, accepted: null },
  watch: NO_OBSERVERS.members,
  isDrawn: () => true,
};

describe('the effects of an answer', () => {
  test('are none for a SKU whose claim is lost or whose answer was overtaken', () => {
    const outcome = effectsOf(
      [row('OURS'), row('OVERTAKEN', { answerable: false })],
      [answer('OURS'), answer('OVERTAKEN'), answer('LOST')],
      differences(
        [price('OURS', 'moved', 1, 2), price('OVERTAKEN', 'moved', 1, 2), price('LOST', 'gone', 1, null)],
        [],
      ),
      NO_LEARNING,
      KNOWN,
    );
    expect(outcome.answered.map(({ sku }) => sku)).toEqual(['OURS']);
    expect(outcome.prices.map(({ sku }) => sku)).toEqual(['OURS']);
    expect(outcome.moves.map(({ sku }) => sku)).toEqual(['OURS']);
    expect(outcome.findings).toEqual([{ sku: 'OURS', finding: 'seen' }]);
  });

  test('include no move if prices are a SKU’s first, stay null, or keep their number', () => {
    const outcome = effectsOf(
      [row('NEW', { seenBefore: false }), row('OLD')],
      [answer('NEW'), answer('OLD')],
      differences(
        [
          price('NEW', 'appeared', null, 7),
          price('OLD', 'appeared', null, null),
          price('OLD', 'entry', 5, 5),
        ],
        ['NEW'],
      ),
      NO_LEARNING,
      KNOWN,
    );
    expect(outcome.prices).toHaveLength(3);
    expect(outcome.moves).toEqual([]);
    expect([...outcome.renewed]).toEqual(['NEW']);
  });

  test('include learning about live SKUs only, with whether they moved', () => {
    const heard: string[] = [];
    effectsOf(
      [
        row('A', { live: true }),
        row('B', { live: true }),
        row('C'),
        row('D', { live: true, answerable: false }),
      ],
      [answer('A'), answer('B', 'not_found'), answer('C')],
      differences([price('B', 'gone', 3, null)]),
      {
        ...NO_LEARNING,
        live: ({ sku, moved }) => {
          heard.push(`${sku} ${String(moved)}`);
          return { sku, alpha: 1, beta: 1, sizesSeen: 0, sizesMoved: 0, nextMs: 1 };
        },
      },
      KNOWN,
    );
    expect(heard).toEqual(['A false', 'B true']);
  });

  test('include the members that moved, except those with a column, which are never muted', () => {
    const member = (name: string) => ({ names: [name], path: JSON.stringify([name]), from: 1, to: 2 });
    const { members } = effectsOf(
      [row('A')],
      [answer('A')],
      {
        prices: [],
        products: {
          fields: [{ sku: 'A', field: 'brand', oldValue: '1', newValue: '2' }],
          members: new Map([['A', [member('brand'), member('views')]]]),
          unknown: [],
        },
      },
      NO_LEARNING,
      KNOWN,
    );
    expect(members.flatMap(({ keys }) => [...keys])).toEqual(['column ["brand"]', 'product ["views"]']);
  });

  test('include how long a 0009 SKU has had no price and no report', () => {
    const lost = (other: Partial<LockedSku>) =>
      effectsOf([row('A', other)], [answer('A', 'not_found')], differences([]), NO_LEARNING, KNOWN).lost.map(
        ({ minutes }) => minutes,
      );
    expect(lost({ state: 'priced' })).toEqual([0]);
    expect(lost({ state: 'pending', minutes: null })).toEqual([0]);
    expect(lost({ state: 'not_found', vanishedMinutes: 90 })).toEqual([90]);
    expect(lost({ state: 'not_found', minutes: 60 })).toEqual([120]);
    expect(lost({ state: 'not_found', vanishedMinutes: 90, reportedMinutes: 30 })).toEqual([30]);
    expect(lost({ state: 'not_found', vanishedMinutes: 90, reportedMinutes: 300 })).toEqual([90]);
    expect(lost({ state: 'not_found', vanishedMinutes: 90, told: true })).toEqual([0]);
    expect(lost({ state: 'removed', vanishedMinutes: 90 })).toEqual([90]);
    expect(lost({ state: 'removed', vanishedMinutes: 90, reportedMinutes: 30 })).toEqual([30]);
    expect(lost({ state: 'removed', reportedMinutes: 30 })).toEqual([30]);
    expect(lost({ state: 'removed', told: true })).toEqual([0]);
  });
});
