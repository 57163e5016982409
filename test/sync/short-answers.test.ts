import { describe, expect, test } from 'vitest';
import type { ClaimedSku } from '../../src/store/ledger/due.ts';
import { afterShort, NO_SHORT, readsNoMore, RecentAnswers } from '../../src/sync/reprice/recent.ts';

/** Whether the partner reads no more, after each of these calls: how many were asked, and how many of them read. */
const judged = (...calls: readonly (readonly [asked: number, read: number | null])[]) => {
  let run = NO_SHORT;
  return calls.map(([asked, read]) => {
    run = afterShort(run, asked, read);
    return readsNoMore(run);
  });
};

describe('answers that say that fewer SKUs were read than were asked', () => {
  test('are for the number of SKUs where as many are read of calls of several sizes', () => {
    expect(judged([100, 80], [90, 80], [100, 80])).toEqual([false, false, true]);
    expect(judged([100, 80], [60, null], [90, 80], [100, 80])).toEqual([false, false, false, true]);
  });

  test('are for SKUs that are passed over where the number differs, or calls of one size only show it', () => {
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

  test('is for its SKUs where all have failed while others were answered', () => {
    const recent = new RecentAnswers();
    expect([true, true, false].map((each) => recent.notePassedOver(asked(true, each)))).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('is for nobody once one was for all, before an answer names SKUs again', () => {
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

  test('is for its only SKU where the answer before named others', () => {
    const recent = new RecentAnswers();
    recent.noteErrors(others, named);
    expect([asked(false), asked(false)].map((skus) => recent.notePassedOver(skus))).toEqual([true, false]);
    recent.noteErrors(others, named);
    recent.noteErrors(asked(false), new Map());
    expect(recent.notePassedOver(asked(false))).toBe(false);
  });
});
