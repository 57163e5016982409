import { type Rate, unmovedProbability } from '../../src/store/live/rate-prior.ts';
import { BINS, binOf } from '../../src/store/trust/calibration.ts';
import type { LiveMarket } from './market.ts';

/** LIVE_INTERVAL's default: the age up to which a live price was acted on before there was a probability. */
const TARGET_MINUTES = 30;
const SAMPLED_EVERY = 10;
/** To order prices by probability, in so many steps. */
const STEPS = 2000;

export interface Count {
  prices: number;
  right: number;
  claimed: number;
}

const none = (): Count => ({ prices: 0, right: 0, claimed: 0 });
const wrongPart = ({ prices, right }: Count) => (prices - right) / Math.max(1, prices);

/** What a seller would act on at many moments of a run, by age and by probability, and how much of it is right. */
export class TrustAccount {
  readonly #since: number;
  #nextAt: number;
  readonly #all = none();
  readonly #young = none();
  readonly #steps = Array.from({ length: STEPS }, none);
  readonly #bins = BINS.map(none);

  constructor(since: number) {
    this.#since = since;
    this.#nextAt = since;
  }

  /** Looks at every price at `minute`, where it is time. */
  sample(minute: number, market: LiveMarket, rateOf: (item: number) => Rate): void {
    if (minute < this.#nextAt || minute < this.#since) return;
    this.#nextAt = minute + SAMPLED_EVERY;
    for (let item = 0; item < market.size; item += 1) {
      const tau = minute - (market.lastRefresh[item] as number);
      const probability = unmovedProbability(rateOf(item), tau);
      const counts = [this.#all, this.#steps[Math.min(STEPS - 1, Math.floor(probability * STEPS))]];
      if (tau <= TARGET_MINUTES) counts.push(this.#young);
      counts.push(this.#bins[binOf(probability)]);
      const right = Number(market.isRight(item, minute));
      for (const count of counts as Count[]) {
        count.prices += 1;
        count.right += right;
        count.claimed += probability;
      }
    }
  }

  result() {
    const at = (from: number) => this.#sum(this.#bins.filter((_, bin) => (BINS[bin] ?? 0) >= from));
    const byAge = wrongPart(this.#young);
    return {
      rightOfAll: 1 - wrongPart(this.#all),
      coverageByAge: this.#young.prices / this.#all.prices,
      rightByAge: 1 - byAge,
      /** Of as many prices, those of the greatest probabilities: wrong ones for each that is wrong by age. */
      wrongAgainstAge: this.#wrongOfBest(this.#young.prices) / byAge,
      calibrationError:
        this.#bins.reduce((sum, { right, claimed }) => sum + Math.abs(right - claimed), 0) / this.#all.prices,
      bins: this.#bins as readonly Readonly<Count>[],
      coverage: at(0.95).prices / this.#all.prices,
      right: 1 - wrongPart(at(0.95)),
      rightOfSurest: 1 - wrongPart(at(0.99)),
    };
  }

  #wrongOfBest(prices: number): number {
    let [left, wrong] = [prices, 0];
    for (const step of this.#steps.toReversed()) {
      const taken = Math.min(left, step.prices);
      wrong += taken * wrongPart(step);
      left -= taken;
    }
    return wrong / prices;
  }

  #sum(counts: readonly Count[]): Count {
    return counts.reduce(
      (sum, { prices, right, claimed }) => ({
        prices: sum.prices + prices,
        right: sum.right + right,
        claimed: sum.claimed + claimed,
      }),
      none(),
    );
  }
}
