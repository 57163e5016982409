import fc from 'fast-check';
import { expect, test } from 'vitest';
import { APART_MINUTES, type HeldDoubt } from '../../src/store/answer/doubts.ts';
import { judgeAll, type SkuJudgement } from '../../src/store/answer/judgements.ts';
import { oddityOf, type SizePrices } from '../../src/store/answer/plausibility.ts';
import { runs } from '../support/soak.ts';

/*
 * A partner that says the true prices, wrong ones of two kinds, or none, in any order and at any time, with a brake
 * on or off, to a mirror as far as doubts go.
 */
const TRUTH: SizePrices = new Map([3900, 4000, 4200, 4100].map((price, at) => [String(40 + at), price]));
const times = (factor: number): SizePrices =>
  new Map([...TRUTH].map(([size, price]) => [size, price * factor]));
const SAYS = { truth: TRUTH, cents: times(100), digit: times(10), nothing: new Map<string, number>() };
type Said = keyof typeof SAYS;

interface Answer {
  readonly says: Said;
  /** Since the answer before. */
  readonly minutes: number;
  readonly braking: boolean;
}

const answers = fc.array(
  fc.record<Answer>({
    says: fc.constantFrom(...(Object.keys(SAYS) as Said[])),
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

/** Whether the newest of these is wrong and was said twice, apart in time, since the truth or other numbers were. */
function wasSaidTwice(said: readonly { readonly says: Said; readonly at: number }[]): boolean {
  const spoken = said.filter(({ says }) => says !== 'nothing');
  const last = spoken.at(-1);
  const from = spoken.findLastIndex(({ says }) => says !== last?.says) + 1;
  return last?.says !== 'truth' && (last?.at ?? 0) - (spoken[from]?.at ?? 0) >= APART_MINUTES;
}

test('no wrong price is without a doubt before the partner has said it twice, five minutes apart', () => {
  fc.assert(
    fc.property(answers, (drawn) => {
      const mirror = new Mirror();
      const said: { says: Said; at: number }[] = [];
      let at = 0;
      for (const { says, minutes, braking } of drawn) {
        at += minutes;
        said.push({ says, at });
        mirror.answer(SAYS[says], at, braking);
        if (mirror.prices.size === 0 || mirror.isDoubted) continue;
        // What was accepted has become what is believed, and the truth may then be what is doubted.
        if (oddityOf(TRUTH, mirror.prices) !== null)
          expect(said.some((_, end) => wasSaidTwice(said.slice(0, end + 1)))).toBe(true);
      }
    }),
    { numRuns: runs(2000) },
  );
});

test('what the partner goes on saying is without a doubt after two answers, whatever it said before', () => {
  fc.assert(
    fc.property(answers, fc.constantFrom<Said>('truth', 'cents', 'digit'), (drawn, says) => {
      const mirror = new Mirror();
      let at = 0;
      for (const answer of drawn) mirror.answer(SAYS[answer.says], (at += answer.minutes), answer.braking);
      mirror.answer(SAYS[says], (at += 1), false);
      mirror.answer(SAYS[says], at + APART_MINUTES, false);
      expect(mirror.isDoubted).toBe(false);
    }),
    { numRuns: runs(2000) },
  );
});
