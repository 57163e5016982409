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
 * Hints: somebody says that a SKU has probably moved. How often a source is right is learned for each one
 * separately, from refreshes of the SKUs that it hinted at: they find more moves than these SKUs' own rates
 * predict, or not. The more often its source was right and the longer its moves last, the more a hint brings a
 * refresh forward, so a source that knows nothing moves nothing. Pure; all times in minutes.
 */

/** How often an unknown source is assumed to be right, and how many refreshes that assumption weighs as much as. */
const USUAL_PRECISION = 0.3;
const USUAL_COUNTS = 4;
/** Below this, a source brings nothing forward. */
const MIN_PRECISION = 0.02;
const MAX_PRECISION = 0.95;
/** The largest part of a source's moves that is believed to be undone. */
const MAX_UNDONE = 0.9;
/**
 * Cost of a refresh for a move that is undone, in gains of one for a move that lasts. The latter makes the price
 * right for the rest of the SKU's wait, half of it on average; the former makes it wrong for the whole next wait.
 */
const COST_OF_UNDONE = 2;
/** A move that does not last is undone within minutes: an earlier refresh would find nothing. */
const AGAIN_MINUTES = 6;
/** How many sizes of a move are remembered: the first ones. */
const MAX_FORMER = 20;
/** The most that all hints at one SKU count for. */
const MAX_HAZARD = 4;
/**
 * Hints of a source that may wait for their refreshes: at first, and in addition for each refresh that has tested
 * it.
 */
const FIRST_WAITING = 50;
const WAITING_A_TEST = 20;
/**
 * A hinted refresh is made if it gains this part of what one more refresh anywhere gains at the end of its wait.
 * The SKU then needs no refresh for a while, so the next one elsewhere comes sooner. A smaller part gains more if
 * moves last, and costs more if they are soon undone.
 */
const HINTED_PART = 0.85;
/** A move is taken for the hinted one from this probability on. */
const EXPLAINED = 0.5;

/**
 * Returns how often a SKU that a source hints at has moved, beyond what the SKU's own rate predicts. The view
 * catalog.hint_sources contains this in SQL, as well as hintRecall and undonePart; test/sync/hints.pg.test.ts
 * compares them.
 */
export function hintPrecision({ expected, unmoved }: Pick<HintRecord, 'expected' | 'unmoved'>): number {
  const still = (USUAL_COUNTS * (1 - USUAL_PRECISION) + unmoved) / (USUAL_COUNTS + expected);
  return Math.min(MAX_PRECISION, Math.max(0, 1 - still));
}

/** Returns the part of all moves that a source has hinted at. */
export function hintRecall(record: HintRecord): number {
  return record.moves <= 0 ? 0 : Math.min(1, (hintPrecision(record) * record.tested) / record.moves);
}

/**
 * Returns the hazard of such a source's hints: their SKU has moved with probability 1 − e^−hazard; 0: they say
 * nothing.
 */
export function hintHazard(record: HintRecord): number {
  const precision = hintPrecision(record);
  return precision < MIN_PRECISION ? 0 : -Math.log1p(-precision);
}

/**
 * Returns the part v of a source's moves that is undone before the next refresh. An undone move is recognised only
 * if its sizes moved in no other way, neither between the refresh before it and its own nor until the next one.
 * Each condition holds as often as moves that are not undone stay, so with n refreshes v ÷ (1 − v)² = undone × n ÷
 * stayed².
 */
export function undonePart({ followed, stayed, undone }: HintRecord): number {
  const ratio = (undone * (USUAL_COUNTS + followed)) / (USUAL_COUNTS + stayed) ** 2;
  if (ratio <= 0) return 0;
  return Math.min(MAX_UNDONE, (2 * ratio + 1 - Math.sqrt(4 * ratio + 1)) / (2 * ratio));
}

/**
 * Returns the hazard with which all hints at a SKU bring its refresh forward: less than jointHazard if their moves
 * do not last.
 */
export function jointPull(hints: readonly Omit<WaitingHint, 'source'>[]): number {
  return jointHazard(
    hints.map(({ hazard, undone }) => ({
      hazard: hazard * Math.max(0, 1 - (1 + COST_OF_UNDONE) * undone),
    })),
  );
}

/**
 * Returns how many hints of a source may wait for their refreshes. A source that says nothing keeps FIRST_WAITING,
 * which test whether that is still so.
 */
export function mostWaiting(record: HintRecord): number {
  const earned = hintHazard(record) > 0 ? WAITING_A_TEST * record.tested : 0;
  return Math.floor(FIRST_WAITING + earned);
}

/** Returns the hazard of all hints at a SKU together. */
export function jointHazard(hints: readonly Pick<WaitingHint, 'hazard'>[]): number {
  return Math.min(
    MAX_HAZARD,
    hints.reduce((sum, { hazard }) => sum + hazard, 0),
  );
}

/**
 * Returns in how many minutes a SKU with hints is refreshed; null: no sooner than it is due. `minutes`: since its
 * last refresh.
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
 * Returns what a refresh shows of the sources that hinted at its SKU. `unmoved`: the probability, by the SKU's own
 * rate, that nothing moved since the refresh before. Each source is measured by what the others leave unexplained,
 * and against other refreshes (HintBase).
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

/** Decides whether a move that a refresh found is at least as probably the hinted one as one by itself. */
export function isHinted(hints: readonly Pick<WaitingHint, 'hazard'>[], unmoved: number): boolean {
  const told = -Math.expm1(-jointHazard(hints));
  return told > 0 && told >= EXPLAINED * (1 - unmoved * (1 - told));
}

/**
 * Returns the sources that predicted a move, if they say anything and their hints explain it; else null. `former`:
 * the prices before the move, by size.
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
 * Returns what became of a move that sources predicted: `stayed`, `undone`, or `moved on`. `moved`: the new prices
 * of the sizes that a refresh has found moved.
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
 * Returns in how many minutes a SKU whose hinted move was found is refreshed again, because the move may be
 * undone; null: no sooner than it is due.
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
 * Returns a source's record after refreshes that tested it, with the moves that all refreshes found meanwhile.
 * Only bench and tests call it: the mirror does the same in SQL (storeHintTests of store/sellers/hints.ts), and
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

/* Lines of manifests are hints about live SKUs like any other, with bounds of their own. Pure. */

/**
 * A source that hints at a larger part of the live lines says nothing: every line may have the time of the build.
 */
const TELLING_PART = 0.5;

/** Returns, for each source, at how many of the SKUs in manifest lines it may hint. */
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
