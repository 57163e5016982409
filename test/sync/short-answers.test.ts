import { describe, expect, test } from 'vitest';
import type { ClaimedSku } from '../../src/store/ledger/due.ts';
import { afterShort, NO_SHORT, readsNoMore, RecentAnswers } from '../../src/sync/reprice/recent.ts';

/**
 * Returns after each call whether the partner reads no more. A call is given by how many SKUs were asked and read.
 */
const judged = (...calls: readonly (readonly [asked: number, read: number | null])[]) => {
  let run = NO_SHORT;
  return calls.map(([asked, read]) => {
    run = afterShort(run, asked, read);
    return readsNoMore(run);
  });
};

describe('answers that read fewer SKUs than were asked', () => {
  test('show a limit on their number if calls of several sizes read equally many', () => {
    expect(judged([100, 80], [90, 80], [100, 80])).toEqual([false, false, true]);
    expect(judged([100, 80], [60, null], [90, 80], [100, 80])).toEqual([false, false, false, true]);
  });

  test('show passed-over SKUs if the number varies, or if only calls of one size show it', () => {
    expect(judged([100, 80], [100, 80], [100, 80], [100, 80])).not.toContain(true);
    expect(judged([100, 80], [50, 40], [100, 80], [50, 40], [100, 80])).not.toContain(true);
    expect(judged([100, 80], [90, 80], [100, null], [90, 80], [100, 80])).not.toContain(true);
  });
});

describe('a call of which no SKU is read', () => {
  const asked = (...setBack: readonly boolean[]): ClaimedSku[] =>
    setBack.map((each, i) => ({
      sku: `S${i}`,
      generation: 0,
      deferrals: 0,
      failures: Number(each),
      live: false,
      setBack: each,
      dueAt: new Date(0),
      reason: 'sweep',
    }));
  const others = asked(false, false);

  const named = new Map(others.map(({ sku }) => [sku, { kind: 'not_found' as const }]));

  test('counts against its SKUs if all of them have failed while others were answered', () => {
    const recent = new RecentAnswers();
    expect([true, true, false].map((each) => recent.notePassedOver(asked(true, each)))).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('counts against none after one with healthy SKUs, until an answer names SKUs again', () => {
    const recent = new RecentAnswers();
    recent.noteErrors(others, named);
    expect(recent.notePassedOver(others)).toBe(false);
    expect([asked(true, true), asked(true)].map((skus) => recent.notePassedOver(skus))).toEqual([
      false,
      false,
    ]);
    recent.noteErrors(asked(true), new Map());
    expect(recent.notePassedOver(asked(true))).toBe(false);
    recent.noteErrors(others, named);
    expect(recent.notePassedOver(asked(true, true))).toBe(true);
  });

  test('counts against its only SKU if the answer before named others', () => {
    const recent = new RecentAnswers();
    recent.noteErrors(others, named);
    expect([asked(false), asked(false)].map((skus) => recent.notePassedOver(skus))).toEqual([true, false]);
    recent.noteErrors(others, named);
    recent.noteErrors(asked(false), new Map());
    expect(recent.notePassedOver(asked(false))).toBe(false);
  });
});
