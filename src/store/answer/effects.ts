import { type AuditFinding, missedMoves } from '../catalog/audit.ts';
import type { FieldChange, FirstRecords, PriceMove, StateChange } from '../history/changes.ts';
import type { HintTest, PredictionTest } from '../live/hint-state.ts';
import type { LearnedRefresh, LiveRefresh } from '../live/refresh.ts';
import { judgePromise, type PromiseCase } from '../sellers/promises.ts';
import type { RefreshTest } from '../trust/calibration.ts';
import { sizesFound, testsOf } from './calibration-evidence.ts';
import { type PriceDifference, type ProductDifferences, changesBeside } from './differences.ts';
import { type HeldDoubt, type KnownSku, judgedAnswers } from './doubts.ts';
import { judgeAll, type SkuJudgement, type UndoubtedMove, undoubtedMoves } from './judgements.ts';
import type { LockedSku } from './lock.ts';
import type { KnownMassMove } from './mass-move.ts';
import { keyOf, membersAlone, type MemberWatch, type Moved } from './members.ts';
import type { Losses } from './plausibility.ts';
import { secondLookIn, findingBeside, type SecondLook, secondLookOf } from './second-looks.ts';
import type { AnswerLearning, SkuResult, WeighedLine } from './types.ts';

/** What an answer says that the mirror does not hold. */
export interface Differences {
  readonly prices: readonly PriceDifference[];
  readonly products: ProductDifferences;
}

/** What follows from an answer. Results count only if their SKU's claim is still ours and they are not overtaken. */
export interface AnswerEffects {
  /** Records and 0009 that are applied. */
  readonly answered: readonly SkuResult[];
  /** SKUs that a delta has removed since the claim, which is still ours: their records and 0009 are not applied. */
  readonly overtaken: readonly string[];
  readonly prices: readonly PriceDifference[];
  /** Prices that moved since an earlier refresh, for the history. */
  readonly moves: readonly PriceMove[];
  readonly moved: ReadonlySet<string>;
  readonly fields: readonly FieldChange[];
  readonly states: readonly StateChange[];
  /** SKUs answered with 0009, and for how many minutes each has had no price (minutesLost). */
  readonly lost: readonly { readonly sku: string; readonly minutes: number }[];
  /** Prices and metadata of SKUs that had none before. */
  readonly first: FirstRecords;
  /** SKUs whose metadata is rewritten, and those of them in which more than muted members has changed. */
  readonly renewed: ReadonlySet<string>;
  readonly changed: ReadonlySet<string>;
  /** For each record, the members and columns that have moved. */
  readonly members: readonly Moved[];
  readonly ahead: readonly LearnedRefresh[];
  /** Lines whose live SKUs were refreshed. */
  readonly lines: readonly WeighedLine[];
  /** What the answer shows about hints' sources and predictions, and how many live refreshes found a move. */
  readonly ofHints: {
    readonly tests: readonly HintTest[];
    readonly predictionTests: readonly PredictionTest[];
    readonly moves: number;
  };
  /** SKUs with hints. */
  readonly hinted: readonly string[];
  /** SKUs with a hazard, or with a move predicted by hints, that are not in `ahead`. */
  readonly boosted: readonly string[];
  /** How many moves of each answered SKU the delta has left out; null if none. */
  readonly missed: ReadonlyMap<string, number | null>;
  readonly findings: readonly { readonly sku: string; readonly finding: AuditFinding }[];
  /** How the answer tests the probabilities that were held. */
  readonly tests: readonly RefreshTest[];
  /** The judgement of each record's prices. */
  readonly judged: readonly SkuJudgement[];
  /** Moves that are doubted if prices have begun to move in masses in the meantime. */
  readonly undoubted: readonly UndoubtedMove[];
  /** SKUs that had been drawn at random, and are now refreshed. */
  readonly drawn: readonly string[];
  readonly promises: readonly PromiseCase[];
  /** SKUs that are asked once more, and in how many seconds after the request. */
  readonly again: ReadonlyMap<string, number>;
}

/**
 * Decides what an answer changes, from its locked SKUs, its records and 0009 (`settled`), and their differences. Pure.
 */
export function effectsOf(
  locked: readonly LockedSku[],
  settled: readonly SkuResult[],
  { prices, products }: Differences,
  learning: Pick<AnswerLearning, 'live' | 'lines'>,
  { muted, massMove, watch, isDrawn }: AnswerContext,
): AnswerEffects {
  const rowOf = new Map(locked.filter(({ answerable }) => answerable).map((row) => [row.sku, row]));
  const ours = ({ sku }: { readonly sku: string }) => rowOf.has(sku);
  const answered = settled.filter(ours);
  const late = new Set(locked.filter(({ answerable }) => !answerable).map(({ sku }) => sku));
  // First prices of a SKU are not moves.
  const moves = prices.filter(
    ({ sku, oldPrice, newPrice }) => oldPrice !== newPrice && rowOf.get(sku)?.seenBefore === true,
  );
  const moved = new Set(moves.map(({ sku }) => sku));
  const fields = fieldChanges(products, muted).filter(ours);
  const changed = new Set([...fields.map(({ sku }) => sku), ...products.unknown]);
  const sizes = sizesFound(answered, prices);
  const refreshes = liveRefreshes(locked, moves, sizes);
  const { lines, lineEvidence } = learning.lines(refreshes);
  const ahead = refreshes.flatMap((refresh) => learning.live(refresh, lineEvidence.get(refresh.sku)) ?? []);
  const isAhead = new Set(ahead.map(({ sku }) => sku));
  const outcomes = outcomesOf(answered, rowOf, moved, isDrawn);
  return {
    answered,
    overtaken: settled.flatMap(({ sku }) => (late.has(sku) ? [sku] : [])),
    prices: prices.filter((price) => ours(price) && !isThinned(price, muted, watch)),
    moves,
    moved,
    fields,
    ...changesBeside(answered, prices, products.unknown, rowOf),
    lost: answered.flatMap((result) => lostFor(result, rowOf.get(result.sku))),
    renewed: new Set([...changed, ...products.members.keys()]),
    changed,
    members: movedMembers(answered, prices, products),
    ahead,
    lines,
    ofHints: hintEffects(ahead, refreshes, isAhead),
    hinted: outcomes.flatMap(({ sku, hints }) => (hints ? [sku] : [])),
    boosted: outcomes.flatMap(({ sku, hazard = null, hints, prediction }) =>
      (hazard !== null || hints || prediction) && !isAhead.has(sku) ? [sku] : [],
    ),
    missed: new Map(outcomes.map((row) => [row.sku, missedMoves(row, row.finding, row.moved)])),
    findings: outcomes.flatMap(({ sku, finding }) => (finding === null ? [] : [{ sku, finding }])),
    tests: testsOf(
      outcomes.filter(({ seenBefore }) => seenBefore),
      sizes,
    ),
    ...judgements({ answered, prices, fields }, rowOf, massMove),
    drawn: outcomes.flatMap(({ sku, random }) => (random ? [sku] : [])),
    promises: outcomes.flatMap(({ sku, promise }) => (promise === null ? [] : [judgePromise(sku, promise)])),
    again: new Map(outcomes.flatMap(({ sku, again }) => (again === null ? [] : [[sku, again]]))),
  };
}

interface Outcome extends LockedSku {
  readonly finding: AuditFinding | null;
  readonly look: SecondLook;
  /** Seconds after its request at which it is asked once more; null if it is not. */
  readonly again: number | null;
}

/** Returns answered SKUs as they were locked, with whether a price has moved and what that says about the delta. */
function outcomesOf(
  answered: readonly SkuResult[],
  rowOf: ReadonlyMap<string, LockedSku>,
  moved: ReadonlySet<string>,
  isDrawn: () => boolean,
): Outcome[] {
  return answered.flatMap((result) => {
    const { sku, kind } = result;
    const row = rowOf.get(sku);
    if (row === undefined) return [];
    const isUnpriced = result.kind === 'record' && result.prices.every(({ price }) => price === null);
    const said = { moved: moved.has(sku), isUnpriced, state: row.state };
    const look = secondLookOf(row, kind, said.moved);
    const again = secondLookIn(look, row, said, isDrawn());
    const finding = findingBeside(look, row, kind, said, again !== null);
    return [{ ...row, look, again, moved: said.moved, finding }];
  });
}

/** Returns what live refreshes show about the sources of hints; `isAhead`: SKUs from which anything was learned. */
function hintEffects(
  ahead: readonly LearnedRefresh[],
  refreshes: readonly LiveRefresh[],
  isAhead: ReadonlySet<string>,
): AnswerEffects['ofHints'] {
  return {
    tests: ahead.flatMap(({ hintTests = [] }) => hintTests),
    predictionTests: ahead.flatMap(({ predictionTests = [] }) => predictionTests),
    moves: refreshes.filter(({ sku, moved }) => moved && isAhead.has(sku)).length,
  };
}

function judgements(
  { answered, prices, fields }: Pick<AnswerEffects, 'answered' | 'prices' | 'fields'>,
  rowOf: ReadonlyMap<string, LockedSku>,
  massMove: KnownMassMove,
): Pick<AnswerEffects, 'judged' | 'undoubted'> {
  const answers = judgedAnswers(answered, prices, renamedIn(fields), (sku) => knownOf(rowOf.get(sku)));
  const judged = judgeAll(answers, (sku) => doubtOf(rowOf.get(sku)), massMove);
  return { judged, undoubted: undoubtedMoves(answers, judged, massMove) };
}

function lostFor({ sku, kind }: SkuResult, row: LockedSku | undefined): AnswerEffects['lost'] {
  if (kind !== 'not_found' || row === undefined) return [];
  const minutes = minutesLost(row);
  return minutes === null ? [] : [{ sku, minutes }];
}

/**
 * Returns the minutes for which a SKU with 0009 has had no price and no report has named it. 0 if it had a price until
 * now, or was never asked. If its history has no price, twice the time since the previous request, because each wait
 * is as long as the SKU had been without a price. Null if it was removed, its history has no price, and it was not
 * reported since. A SKU that comes back is reported once, and the price routes may learn of it later than the delta.
 */
function minutesLost({ state, vanishedMinutes, minutes, told, reportedMinutes }: LockedSku): number | null {
  if (state === 'priced' || state === 'pending') return 0;
  const unpriced = vanishedMinutes ?? (state === 'not_found' && minutes !== null ? 2 * minutes : null);
  const untold = told ? 0 : reportedMinutes;
  return unpriced === null || untold === null ? (unpriced ?? untold) : Math.min(unpriced, untold);
}

/** Returns what the answer has found for SKUs whose prices move at rates of their own. */
function liveRefreshes(
  locked: readonly LockedSku[],
  moves: readonly PriceMove[],
  sizes: ReturnType<typeof sizesFound>,
): (LockedSku & LiveRefresh)[] {
  const movesOf = Map.groupBy(moves, ({ sku }) => sku);
  return locked
    .filter(({ live, cohort, answerable }) => (live || cohort === 'unlisted') && answerable)
    .map((row) => {
      const own = movesOf.get(row.sku) ?? [];
      const prices = new Map(own.map(({ size, oldPrice: from, newPrice: to }) => [size, { from, to }]));
      return { ...row, moved: own.length > 0, sizes: sizes.get(row.sku), prices };
    });
}

/** What is known at the time of an answer besides its SKUs. */
export interface AnswerContext {
  readonly muted: ReadonlySet<string>;
  readonly massMove: KnownMassMove;
  readonly watch: Pick<MemberWatch, 'follows'>;
  /** Draws whether a SKU belongs to the part that is asked once more. */
  readonly isDrawn: () => boolean;
}

/** Returns the SKUs whose name and model have both changed. */
function renamedIn(fields: readonly FieldChange[]): ReadonlySet<string> {
  const changed = (field: string) => fields.filter((change) => change.field === field).map(({ sku }) => sku);
  const models = new Set(changed('model'));
  return new Set(changed('name').filter((sku) => models.has(sku)));
}

const knownOf = (row: LockedSku | undefined): KnownSku => ({
  // Not asked yet by this account: what is held may be of the account before it was adopted.
  isOurs: row !== undefined && row.minutes !== null,
  vanished: new Map(Object.entries(row?.vanished ?? {})),
  vanishedMinutes: row?.vanishedMinutes ?? 0,
  losses: row === undefined ? undefined : lossesOf(row),
  sizesToCome: row === undefined || row.seenBefore ? null : row.listedSizes,
});

/** The delta reports the losses of SKUs that it covers (partner rules 4.2.4 to 4.2.6). */
function lossesOf({ live, cohort, told }: LockedSku): Losses {
  if (told === true && !live) return 'told';
  return live || cohort === 'live' || cohort === 'unlisted' ? 'unusual' : 'all';
}

function doubtOf(row: LockedSku | undefined): HeldDoubt | null {
  if (row === undefined || row.doubt === null) return null;
  const { doubt, oddity, doubtMinutes, believed } = row;
  return { doubt, oddity, minutes: doubtMinutes ?? 0, believed: new Map(Object.entries(believed ?? {})) };
}

/** Returns changes of metadata for the history: of columns, and one per product for its moved, unmuted members. */
function fieldChanges({ fields, members }: ProductDifferences, muted: ReadonlySet<string>): FieldChange[] {
  const ofMembers = [...members].flatMap(([sku, changes]): FieldChange[] => {
    const heard = changes.filter(({ path }) => !muted.has(keyOf({ part: 'product', path })));
    if (heard.length === 0) return [];
    return [
      { sku, field: 'product', oldValue: membersAlone(heard, 'from'), newValue: membersAlone(heard, 'to') },
    ];
  });
  return [...fields, ...ofMembers];
}

/** Whether only muted members of an entry have moved: then it is stored only with the next move of anything else. */
function isThinned(
  { sku, members }: PriceDifference,
  muted: ReadonlySet<string>,
  watch: Pick<MemberWatch, 'follows'>,
): boolean {
  if (members === undefined || members.length === 0 || watch.follows(sku)) return false;
  return members.every(({ path }) => muted.has(keyOf({ part: 'entry', path })));
}

function movedMembers(
  answered: readonly SkuResult[],
  prices: readonly PriceDifference[],
  products: ProductDifferences,
): Moved[] {
  const keys = new Map<string, Set<string>>(
    answered.flatMap(({ sku, kind }) => (kind === 'record' ? [[sku, new Set<string>()]] : [])),
  );
  for (const { sku, field } of products.fields)
    keys.get(sku)?.add(keyOf({ part: 'column', path: JSON.stringify([field]) }));
  // If a column reports its text, too, the member is never muted: a copy made from changes would keep the text.
  for (const [sku, changes] of products.members)
    for (const { path } of changes)
      if (keys.get(sku)?.has(keyOf({ part: 'column', path })) !== true)
        keys.get(sku)?.add(keyOf({ part: 'product', path }));
  for (const { sku, members = [] } of prices)
    // A value that is not an object has no member that could be told apart from a price that moves.
    for (const { names, path } of members)
      if (names.length > 0) keys.get(sku)?.add(keyOf({ part: 'entry', path }));
  return [...keys].map(([sku, moved]) => ({ sku, keys: moved }));
}
