import type { ManifestRecords, HintableLines } from '../../store/catalog/manifest-hints.ts';
import {
  type HintRecord,
  type HintTest,
  MAX_TESTED,
  type PredictedMove,
  type PredictionTest,
  type WaitingHint,
  type ManifestSource,
  UNTESTED,
} from '../../store/live/hint-state.ts';
import { faded, type Rate } from '../../store/live/rate-prior.ts';
import { boostedMinutes, type RefreshTerms } from './policy.ts';

/*
 * Hints: somebody says that a SKU has probably moved. How often a source is right is learned for each one by itself,
 * from refreshes of the SKUs that it hinted at: they find more moves than these SKUs' own rates predict, or not. A hint
 * brings a refresh forward the more, the more often its source was right and the longer its moves last, so a source
 * that knows nothing moves nothing. Pure; all times in minutes.
 */

/** How often a source is taken to be right while nothing is known of it, and how many refreshes that weighs as. */
const USUAL_PRECISION = 0.3;
const USUAL_COUNTS = 4;
/** Below it a source brings nothing forward. */
const MIN_PRECISION = 0.02;
const MAX_PRECISION = 0.95;
/** No more of what a source tells of is taken to be undone. */
const MAX_UNDONE = 0.9;
/**
 * Cost of a refresh for a move that is undone, in gains of one for a move that lasts. The latter makes the price right
 * for the rest of the SKU's wait, half of it on average; the former makes it wrong for the whole next wait.
 */
const COST_OF_UNDONE = 2;
/** What does not last is back after minutes: a refresh before that would find nothing. */
const AGAIN_MINUTES = 6;
/** Sizes of a move that are remembered; of more, the first ones. */
const MAX_FORMER = 20;
/** All hints at one SKU together count for no more. */
const MAX_HAZARD = 4;
/**
 * Hints of a source that may wait for their refreshes: at first, and how many more for each refresh that has tested it.
 */
const FIRST_WAITING = 50;
const WAITING_A_TEST = 20;
/**
 * A hinted refresh is made if it gains this part of what one more refresh anywhere gains at the end of its wait. After
 * it the SKU needs no refresh for a while, so the next one elsewhere comes sooner. A smaller part gains more if moves
 * last, and costs more if they are soon undone.
 */
const HINTED_PART = 0.85;
/** A move that is as probably the hinted one is taken for it. */
const EXPLAINED = 0.5;

/**
 * How often a SKU that a source hints at has moved, beyond what the SKU's own rate predicts. The view
 * catalog.hint_sources has this in SQL, as well as hintRecall and undonePart; test/sync/hints.pg.test.ts compares them.
 */
export function hintPrecision({ expected, unmoved }: Pick<HintRecord, 'expected' | 'unmoved'>): number {
  const still = (USUAL_COUNTS * (1 - USUAL_PRECISION) + unmoved) / (USUAL_COUNTS + expected);
  return Math.min(MAX_PRECISION, Math.max(0, 1 - still));
}

/** The part of all moves that a source has hinted at. */
export function hintRecall(record: HintRecord): number {
  return record.moves <= 0 ? 0 : Math.min(1, (hintPrecision(record) * record.tested) / record.moves);
}

/** A SKU that such a source hints at has moved with a probability of 1 − e^−hazard; 0: the hint says nothing. */
export function hintHazard(record: HintRecord): number {
  const precision = hintPrecision(record);
  return precision < MIN_PRECISION ? 0 : -Math.log1p(-precision);
}

/**
 * The part v of a source's moves that is undone before the next refresh. An undone move is recognised only if its sizes
 * moved in no other way, neither between the refresh before it and its own nor until the next one. Either holds as
 * often as moves that are not undone stay, so with n refreshes v ÷ (1 − v)² = undone × n ÷ stayed².
 */
export function undonePart({ followed, stayed, undone }: HintRecord): number {
  const ratio = (undone * (USUAL_COUNTS + followed)) / (USUAL_COUNTS + stayed) ** 2;
  if (ratio <= 0) return 0;
  return Math.min(MAX_UNDONE, (2 * ratio + 1 - Math.sqrt(4 * ratio + 1)) / (2 * ratio));
}

/**
 * The hazard by which all hints at a SKU bring its refresh forward: less than jointHazard if the moves that they tell
 * of do not last.
 */
export function jointPull(hints: readonly Omit<WaitingHint, 'source'>[]): number {
  return jointHazard(
    hints.map(({ hazard, undone }) => ({
      hazard: hazard * Math.max(0, 1 - (1 + COST_OF_UNDONE) * undone),
    })),
  );
}

/**
 * How many hints of a source may wait for their refreshes. A source that says nothing keeps FIRST_WAITING of them,
 * which test whether it still says nothing.
 */
export function mostWaiting(record: HintRecord): number {
  const earned = hintHazard(record) > 0 ? WAITING_A_TEST * record.tested : 0;
  return Math.floor(FIRST_WAITING + earned);
}

/** The hazard of all hints at a SKU together. */
export function jointHazard(hints: readonly Pick<WaitingHint, 'hazard'>[]): number {
  return Math.min(
    MAX_HAZARD,
    hints.reduce((sum, { hazard }) => sum + hazard, 0),
  );
}

/**
 * In how many minutes a SKU with hints is refreshed; null: no sooner than it is due. `minutes`: since its last refresh.
 */
export function hintedMinutes(
  {
    weight,
    rate,
    minutes,
    dueIn,
  }: {
    readonly weight: number;
    readonly rate: Rate;
    readonly minutes: number;
    readonly dueIn: number;
  },
  hazard: number,
  plan: RefreshTerms,
): number | null {
  if (hazard <= 0) return null;
  const sooner = { ...plan, refreshThreshold: HINTED_PART * plan.refreshThreshold };
  const inMinutes = Math.max(0, boostedMinutes({ weight, rate, hazard }, sooner) - minutes);
  return inMinutes < dueIn ? inMinutes : null;
}

/**
 * What a refresh shows of the sources that hinted at its SKU. `unmoved`: the probability, by the SKU's own rate, that
 * nothing moved since the refresh before. Each source is measured by what the others leave unexplained, and against how
 * other refreshes go (HintBase).
 */
export function testHints(
  hints: readonly Pick<WaitingHint, 'source' | 'hazard'>[],
  unmoved: number,
  moved: boolean,
): HintTest[] {
  const all = hints.reduce((sum, { hazard }) => sum + hazard, 0);
  return [
    { source: null, expected: unmoved, alone: unmoved, moved },
    ...hints.map(({ source, hazard }) => ({
      source,
      expected: unmoved * Math.exp(hazard - all),
      alone: unmoved,
      moved,
    })),
  ];
}

/** Whether a move that a refresh has found is at least as probably the hinted one as one by itself. */
export function isHinted(hints: readonly Pick<WaitingHint, 'hazard'>[], unmoved: number): boolean {
  const told = -Math.expm1(-jointHazard(hints));
  return told > 0 && told >= EXPLAINED * (1 - unmoved * (1 - told));
}

/**
 * The sources that had told of a move, if they say anything and their hints explain it; else null. `former`: the prices
 * before the move, by size.
 */
export function predictedMove(
  hints: readonly WaitingHint[],
  unmoved: number,
  former: Readonly<Record<string, number | null>>,
): PredictedMove | null {
  const sources = hints.flatMap(({ source, hazard }) => (hazard > 0 ? [source] : []));
  const sizes = Object.entries(former);
  if (sources.length === 0 || sizes.length === 0 || !isHinted(hints, unmoved)) return null;
  return { sources, former: Object.fromEntries(sizes.slice(0, MAX_FORMER)) };
}

/**
 * What became of a move that sources had told of: `stayed`, `undone`, or `moved on`. `moved`: the new prices of the
 * sizes that a refresh has found moved.
 */
export function testPrediction(
  { sources, former }: PredictedMove,
  moved: ReadonlyMap<string, number | null>,
): PredictionTest[] {
  const sizes = Object.entries(former);
  const stayed = sizes.every(([size]) => !moved.has(size));
  const undone = sizes.every(([size, price]) => moved.get(size) === price);
  return sources.map((source) => ({ source, found: stayed ? 'stayed' : undone ? 'undone' : 'moved on' }));
}

/**
 * In how many minutes a SKU whose hinted move was found is refreshed again, because the move may be undone; null: no
 * sooner than it is due.
 */
export function predictionRecheckMinutes(
  sku: { readonly weight: number; readonly rate: Rate; readonly dueIn: number },
  hints: readonly WaitingHint[],
  plan: RefreshTerms,
): number | null {
  const undone = Math.max(0, ...hints.flatMap((hint) => (hint.hazard > 0 ? [hint.undone] : [])));
  const inMinutes = hintedMinutes({ ...sku, minutes: 0 }, -Math.log1p(-undone), plan);
  return inMinutes === null || sku.dueIn <= AGAIN_MINUTES ? null : Math.max(AGAIN_MINUTES, inMinutes);
}

/**
 * A source after refreshes that tested it, and the moves that all refreshes have found meanwhile. Only bench and
 * tests call it: the mirror has the same in SQL (storeHintTests of store/sellers/hints.ts), and
 * test/sync/hints.pg.test.ts compares them.
 */
export function learnHints(before: HintRecord, shown: HintRecord): HintRecord {
  const tested = before.tested + shown.tested;
  const scale = tested > MAX_TESTED ? MAX_TESTED / tested : 1;
  return {
    tested: tested * scale,
    expected: faded((before.expected + shown.expected) * scale),
    unmoved: faded((before.unmoved + shown.unmoved) * scale),
    moves: faded((before.moves + shown.moves) * scale),
    followed: faded((before.followed + shown.followed) * scale),
    stayed: faded((before.stayed + shown.stayed) * scale),
    undone: faded((before.undone + shown.undone) * scale),
  };
}

/* What lines of manifests tell of live SKUs is a hint like any other, with bounds of its own. Pure. */

/**
 * A source that hints at a greater part of the live lines says nothing: every line has the time of the build, say.
 */
const TELLING_PART = 0.5;

/** How many of the SKUs that lines tell of are hinted at, at most, by source. */
export function mostByManifest(
  records: ManifestRecords,
  { hintable, live }: HintableLines,
): Record<ManifestSource, number> {
  const most = (source: ManifestSource) => {
    const { waiting, ...record } = records.get(source) ?? { ...UNTESTED, waiting: 0 };
    if (hintable[source] > TELLING_PART * live) return 0;
    return Math.max(0, mostWaiting(record) - waiting);
  };
  return { 'manifest.updated_at': most('manifest.updated_at'), 'manifest.sizes': most('manifest.sizes') };
}
