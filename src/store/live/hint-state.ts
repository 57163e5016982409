/* What is stored about the sources of hints. */

/** What refreshes of hinted SKUs have shown about a source: sums that fade together. */
export interface HintRecord {
  /** The number of such refreshes. */
  readonly tested: number;
  /** How many of them were expected to find nothing without the hint, and how many did find nothing. */
  readonly expected: number;
  readonly unmoved: number;
  /** Moves of live SKUs that refreshes found meanwhile, hinted at or not. */
  readonly moves: number;
  /**
   * Refreshes that followed one that found what the source had told of. Of these, how many found the prices
   * unchanged, and how many found the prices from before that move again.
   */
  readonly followed: number;
  readonly stayed: number;
  readonly undone: number;
}

/**
 * The mirror's own sources: what manifest lines reveal about live SKUs. Nobody else can use these names
 * (catalog.hint).
 */
export const MANIFEST_SOURCES = ['manifest.updated_at', 'manifest.sizes'] as const;
export type ManifestSource = (typeof MANIFEST_SOURCES)[number];

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
 * A hint that waits for the next refresh of its SKU. With a probability of 1 − e^−hazard the SKU has moved, and with
 * probability `undone` such a move is undone before the refresh after that.
 */
export interface WaitingHint {
  readonly source: string;
  readonly hazard: number;
  readonly undone: number;
}

/**
 * The move that the last refresh of a SKU found after sources had told of it: the former prices of the sizes that
 * moved.
 */
export interface PredictedMove {
  readonly sources: readonly string[];
  readonly former: Readonly<Record<string, number | null>>;
}

/** What the next refresh found about that move. */
export interface PredictionTest {
  readonly source: string;
  readonly found: 'stayed' | 'undone' | 'moved on';
}

/** What refreshes show about a source, without the moves found by all refreshes. */
export type ShownOfSource = Omit<HintRecord, 'moves'>;

const { moves: _, ...nothing }: HintRecord = UNTESTED;
export const NOTHING_SHOWN: ShownOfSource = nothing;

export const shownByPrediction = ({ found }: PredictionTest): Partial<ShownOfSource> => ({
  followed: 1,
  stayed: Number(found === 'stayed'),
  undone: Number(found === 'undone'),
});

export const plusShown = (of: ShownOfSource, more: Partial<ShownOfSource>): ShownOfSource => ({
  tested: of.tested + (more.tested ?? 0),
  expected: of.expected + (more.expected ?? 0),
  unmoved: of.unmoved + (more.unmoved ?? 0),
  followed: of.followed + (more.followed ?? 0),
  stayed: of.stayed + (more.stayed ?? 0),
  undone: of.undone + (more.undone ?? 0),
});

/** How many tests of a source are remembered; older ones fade. */
export const MAX_TESTED = 500;

export interface HintTest {
  /** Null for the test that shows how refreshes go in general: there is one for each refresh, whoever hinted at it. */
  readonly source: string | null;
  /** The probability of finding nothing if this source had not hinted. */
  readonly expected: number;
  /** The same probability by the SKU's own rate alone. */
  readonly alone: number;
  readonly moved: boolean;
}

interface Sums {
  readonly expected: number;
  readonly unmoved: number;
}

const NONE: Sums = { expected: 0, unmoved: 0 };
/** The number of refreshes that a source's own results count as, compared with those that it gave no hint for. */
const OWN_COUNTS = 20;
/** Sums above this fade. */
const MAX_EXPECTED = 2000;
const [MIN_PART, MAX_PART] = [0.2, 1.5];

/**
 * How refreshes go without a hint from a source: how often they find nothing, relative to what rates predict. In
 * markets that move in bursts rates are wrong, so a source that hints at everything would seem to know of all moves
 * that they do not foresee. Therefore a source is measured by refreshes that it did not hint at, or by its own if
 * there are no others. Holds what one process has seen, and starts empty with each.
 */
export class HintBase {
  #all = NONE;
  #of = new Map<string, Sums>();

  /** Takes the tests of an answer into account. Returns those of sources, weighted as they count for them. */
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
