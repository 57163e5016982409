/* What is known of the sources of hints, as it is stored. */

/** What refreshes of SKUs that a source had hinted at have shown of it: sums that fade together. */
export interface HintRecord {
  /** Such refreshes. */
  readonly tested: number;
  /** How many of them were expected to find nothing, had there been no hint, and how many found nothing. */
  readonly expected: number;
  readonly unmoved: number;
  /** Moves of live SKUs that refreshes have found meanwhile, hinted at or not. */
  readonly moves: number;
  /**
   * Refreshes that came after one that found what the source had told of; how many of them found the prices as that
   * left them, and how many found the prices before it again.
   */
  readonly followed: number;
  readonly stayed: number;
  readonly undone: number;
}

/**
 * Sources of the mirror's own: what lines of manifests tell of live SKUs. Nobody else can use these names
 * (catalog.hint).
 */
export const MANIFEST_SOURCES = ['manifest.updated_at', 'manifest.sizes'] as const;
export type ManifestSource = (typeof MANIFEST_SOURCES)[number];

/** As long as no refresh has tested a source. */
export const UNTESTED: HintRecord = {
  tested: 0,
  expected: 0,
  unmoved: 0,
  moves: 0,
  followed: 0,
  stayed: 0,
  undone: 0,
};

/**
 * A hint that waits for the next refresh of its SKU: with a probability of 1 − e^−hazard the SKU has moved, and with
 * that of `undone` such a move is undone before the refresh after.
 */
export interface WaitingHint {
  readonly source: string;
  readonly hazard: number;
  readonly undone: number;
}

/**
 * What the last refresh of a SKU has found, where sources had told of it: the prices before, by the sizes that moved.
 */
export interface PredictedMove {
  readonly sources: readonly string[];
  readonly former: Readonly<Record<string, number | null>>;
}

/** What the next refresh has found of it. */
export interface PredictionTest {
  readonly source: string;
  readonly found: 'stayed' | 'undone' | 'moved on';
}

/** What refreshes show of a source, but for the moves that all of them find. */
export type ShownOfSource = Omit<HintRecord, 'moves'>;

const { moves: _, ...nothing }: HintRecord = UNTESTED;
/** Before any refresh. */
export const NOTHING_SHOWN: ShownOfSource = nothing;

/** What such a test adds. */
export const shownByPrediction = ({ found }: PredictionTest): Partial<ShownOfSource> => ({
  followed: 1,
  stayed: Number(found === 'stayed'),
  undone: Number(found === 'undone'),
});

/** The sums of both. */
export const plusShown = (of: ShownOfSource, more: Partial<ShownOfSource>): ShownOfSource => ({
  tested: of.tested + (more.tested ?? 0),
  expected: of.expected + (more.expected ?? 0),
  unmoved: of.unmoved + (more.unmoved ?? 0),
  followed: of.followed + (more.followed ?? 0),
  stayed: of.stayed + (more.stayed ?? 0),
  undone: of.undone + (more.undone ?? 0),
});

/** Refreshes that have tested a source, as far as they are remembered: the older ones fade. */
export const MAX_TESTED = 500;

/** What a refresh shows of a source. */
export interface HintTest {
  /** Null: of no source, but of how refreshes go: there is one such of each, whoever had hinted at it. */
  readonly source: string | null;
  /** The probability of finding nothing, had this source not hinted. */
  readonly expected: number;
  /** The same by the SKU's own rate alone. */
  readonly alone: number;
  readonly moved: boolean;
}

interface Sums {
  readonly expected: number;
  readonly unmoved: number;
}

const NONE: Sums = { expected: 0, unmoved: 0 };
/** Refreshes that a source's own results weigh as, beside those that it gave no hint for. */
const OWN_COUNTS = 20;
/** Sums beyond it fade. */
const MAX_EXPECTED = 2000;
const [MIN_PART, MAX_PART] = [0.2, 1.5];

/**
 * How refreshes go without a hint from a source: how often they find nothing, as a part of what rates say. Rates are
 * wrong in markets whose moves come in crowds, so a source that hints at everything would seem to know of all moves
 * that they do not foresee. Therefore a source is measured by the refreshes of others, or by its own if there are none.
 * Holds what one process has seen, and begins anew with each.
 */
export class HintBase {
  #all = NONE;
  #of = new Map<string, Sums>();

  /** Takes the tests of an answer into account, and returns those of sources, as they count for them. */
  weigh(tests: readonly HintTest[]): (HintTest & { readonly source: string })[] {
    return tests.flatMap((test) => {
      const { source, expected, alone, moved } = test;
      const unmoved = Number(!moved);
      if (source === null) {
        this.#all = plus(this.#all, { expected: alone, unmoved });
        if (this.#all.expected > MAX_EXPECTED) this.#fade();
        return [];
      }
      const own = plus(this.#of.get(source) ?? NONE, { expected: alone, unmoved });
      this.#of.set(source, own);
      return [{ ...test, source, expected: Math.min(1, expected * restPart(this.#all, own)) }];
    });
  }

  #fade(): void {
    const half = ({ expected, unmoved }: Sums): Sums => ({ expected: expected / 2, unmoved: unmoved / 2 });
    this.#all = half(this.#all);
    this.#of = new Map([...this.#of].map(([source, sums]) => [source, half(sums)]));
  }
}

const plus = (a: Sums, b: Sums): Sums => ({
  expected: a.expected + b.expected,
  unmoved: a.unmoved + b.unmoved,
});

function restPart(all: Sums, own: Sums): number {
  const others = {
    expected: Math.max(0, all.expected - own.expected),
    unmoved: Math.max(0, all.unmoved - own.unmoved),
  };
  const ofOwn = (own.unmoved + 1) / (own.expected + 1);
  const part = (others.unmoved + OWN_COUNTS * ofOwn) / (others.expected + OWN_COUNTS);
  return Math.min(MAX_PART, Math.max(MIN_PART, part));
}
