import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type HeldDoubt } from '../../src/store/answer/doubts.ts';
import { judgeAll, type SkuJudgement, undoubtedMoves } from '../../src/store/answer/judgements.ts';
import { APART_MINUTES } from '../../src/store/answer/mass-move.ts';
import { oddityOf, type SizePrices } from '../../src/store/answer/plausibility.ts';
import { runs } from '../support/soak.ts';

/*
 * A partner that gives true prices, wrong ones that vary between its answers, or none, in any order and at any
 * time, with or without a mass move, to a mirror that only tracks doubts.
 */
const TRUTH: SizePrices = new Map([3900, 4000, 4200, 4100].map((price, at) => [String(40 + at), price]));
/** What the partner answers: a factor for all sizes or for one; null: no prices. */
type Said = { readonly factor: number; readonly of: 'all' | '41' } | null;
const said = fc.option(
  fc.record({
    factor: fc.constantFrom(1, 1, 1.05, 3.4, 10, 24, 100),
    of: fc.constantFrom<'all' | '41'>('all', '41'),
  }),
  { freq: 5 },
);
const pricesOf = (says: Said): SizePrices =>
  says === null
    ? new Map()
    : new Map(
        [...TRUTH].map(([size, price]) => [
          size,
          says.of === 'all' || size === says.of ? Math.round(price * says.factor) : price,
        ]),
      );

interface Answer {
  readonly says: Said;
  /** Since the answer before. */
  readonly minutes: number;
  readonly braking: boolean;
}

const answers = fc.array(
  fc.record<Answer>({
    says: said,
    minutes: fc.constantFrom(0, 1, 4, APART_MINUTES, 60),
    braking: fc.boolean(),
  }),
  { maxLength: 14 },
);

/** What a mirror remembers of one SKU. */
class Mirror {
  prices: SizePrices = TRUTH;
  #vanished: SizePrices = new Map();
  #held: (Omit<HeldDoubt, 'minutes'> & { readonly at: number }) | null = null;

  get isDoubted(): boolean {
    return this.#held !== null;
  }

  answer(now: SizePrices, at: number, braking: boolean): void {
    const before = this.prices.size > 0 ? this.prices : this.#vanished;
    const held = this.#held === null ? null : { ...this.#held, minutes: at - this.#held.at };
    const known = {
      since: braking ? new Date(0) : null,
      usual: null,
      kind: null,
      factor: null,
      accepted: null,
    };
    const [judged] = judgeAll([{ sku: 'A', before, now, renamed: false }], () => held, known);
    this.#follow(judged?.judgement ?? { kind: 'none' }, at);
    if (this.prices.size > 0) this.#vanished = this.prices;
    this.prices = now;
  }

  #follow(judgement: SkuJudgement['judgement'], at: number): void {
    if (judgement.kind === 'begins') this.#held = { ...judgement, at };
    else if (judgement.kind === 'ends') this.#held = null;
  }
}

interface SaidAt {
  readonly prices: SizePrices;
  readonly at: number;
}

/** Whether all prices are within a seventh of the others, as differences by rounding are. */
const isNear = (one: SizePrices, other: SizePrices) =>
  [...one].every(([size, price]) => Math.abs(Math.log(price / (other.get(size) ?? price))) < 0.13);

/** Whether the last prices have been repeated for five minutes, with no others in between. */
function isSaidTwice(said: readonly SaidAt[]): boolean {
  const spoken = said.filter(({ prices }) => prices.size > 0);
  const last = spoken.at(-1);
  if (last === undefined) return false;
  const from = spoken.findLastIndex(({ prices }) => !isNear(prices, last.prices)) + 1;
  return last.at - (spoken[from]?.at ?? last.at) >= APART_MINUTES;
}

test('no wrong price is undoubted before the partner has given it twice, five minutes apart', () => {
  fc.assert(
    fc.property(answers, (drawn) => {
      const mirror = new Mirror();
      const said: SaidAt[] = [];
      let at = 0;
      for (const { says, minutes, braking } of drawn) {
        at += minutes;
        said.push({ prices: pricesOf(says), at });
        mirror.answer(pricesOf(says), at, braking);
        if (mirror.prices.size === 0 || mirror.isDoubted || oddityOf(TRUTH, mirror.prices) === null) continue;
        expect(isSaidTwice(said)).toBe(true);
        // What was accepted is now what the mirror believes, so the truth may be doubted.
        return;
      }
    }),
    { numRuns: runs(4000) },
  );
});

test('what the partner keeps answering is undoubted after two answers, whatever it answered before', () => {
  fc.assert(
    fc.property(answers, said, (drawn, says) => {
      fc.pre(says !== null);
      const mirror = new Mirror();
      let at = 0;
      for (const answer of drawn)
        mirror.answer(pricesOf(answer.says), (at += answer.minutes), answer.braking);
      mirror.answer(pricesOf(says), (at += 1), false);
      mirror.answer(pricesOf(says), at + APART_MINUTES, false);
      expect(mirror.isDoubted).toBe(false);
    }),
    { numRuns: runs(2000) },
  );
});

test('the moves undoubted only for lack of a known mass move are those that one would have doubted', () => {
  const some = fc.constantFrom(0, 100, 100, 120, 130, 340, 1000).map((price) => price * 10);
  const pricesDrawn = fc
    .tuple(some, some, some, some)
    .map(
      (drawn): SizePrices =>
        new Map(drawn.flatMap((price, at) => (price > 0 ? [[String(40 + at), price]] : []))),
    );
  const asked = fc.record({
    before: pricesDrawn,
    now: pricesDrawn,
    returned: pricesDrawn,
    renamed: fc.boolean(),
  });
  const moves = fc.record({
    usual: fc.constantFrom(null, 0.02),
    accepted: fc.constantFrom(null, Math.log(1.2), Math.log(3.4)),
    since: fc.constantFrom(null, new Date(0)),
  });
  fc.assert(
    fc.property(fc.array(asked, { maxLength: 4 }), moves, (drawn, massMove) => {
      const answers = drawn.map((answer, at) => ({ sku: `S${at}`, ...answer }));
      const known = { ...massMove, kind: null, factor: null };
      const judged = judgeAll(answers, () => null, known);
      const begun = judgeAll(answers, () => null, {
        ...known,
        since: new Date(0),
        kind: 'factor',
        factor: 0,
      });
      const expected = begun.flatMap(({ sku, judgement }, at) =>
        known.since === null && judged[at]?.judgement.kind === 'none' && judgement.kind === 'begins'
          ? [{ sku, believed: judgement.believed }]
          : [],
      );
      expect(undoubtedMoves(answers, judged, known)).toEqual(expected);
    }),
    { numRuns: runs(2000) },
  );
});
