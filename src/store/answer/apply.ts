import { failpoint } from '../../lib/failpoint.ts';
import { auditRefreshes } from '../catalog/audit.ts';
import { notingLateClock } from '../clock.ts';
import { allSent, type Sql, transaction, type Tx } from '../connection/db.ts';
import { sqlState } from '../connection/sql-errors.ts';
import { correctedMeanings, hasChanges, writeChanges } from '../history/changes.ts';
import type { Claim } from '../ledger/due.ts';
import { forgetDrawn, forgetHazards, writeRates } from '../live/refresh.ts';
import { forgetHints, storeHintTests } from '../sellers/hints.ts';
import { countPromises, type PromiseCounts, writePromiseCases } from '../sellers/promises.ts';
import { sortByScope } from '../sellers/scope.ts';
import { storeCalibration } from '../trust/calibration.ts';
import { compareProducts } from './differences.ts';
import { type AnswerContext, type AnswerEffects, effectsOf } from './effects.ts';
import { type AnswerMoment, lockAnswered } from './lock.ts';
import type { MassMoved } from './mass-move.ts';
import { doubtIfBegun, followMoves } from './mass-moves.ts';
import { mayBeMuted, type Moved, type MutedChange, readMuted, storeMuted } from './members.ts';
import { type AnswerObservers, NO_OBSERVERS } from './observers.ts';
import { writeOddMoves } from './odd-moves.ts';
import { comparePrices } from './price-differences.ts';
import {
  type AnswerLearning,
  type DoubtedSku,
  type NextRefresh,
  NO_LEARNING,
  type SkuResult,
  type WeighedLine,
} from './types.ts';
import {
  postpone,
  returnOvertaken,
  settleAnswered,
  type Settling,
  writeStates,
  newlyDoubted,
  writeDoubts,
  writePrices,
  writeProducts,
} from './writes.ts';

/** What became of an answer: what it was applied to, what it has changed, and what that shows. */
export interface Applied {
  /** Lines whose live SKUs were refreshed: to be weighed, and stored with what the call teaches. */
  readonly lines: readonly WeighedLine[];
  /** Members that the answer has shown to move with each refresh, or no longer to do so. */
  readonly members: MutedChange;
  /** SKUs whose claim was still ours. The rest of the answer came too late and changed nothing. */
  readonly accepted: number;
  readonly priceChanges: number;
  readonly metadataChanges: number;
  /** For each report of the delta that this answer answers: seconds from the report to the commit of the answer. */
  readonly reportSeconds: readonly number[];
  /** SKUs whose size keys changed their meaning (size_map.size_type corrected). */
  readonly sizeTypeChanges: readonly string[];
  /** SKUs whose prices must not be acted on before a second answer, starting with this one. */
  readonly doubted: readonly DoubtedSku[];
  /** The mass move that has begun or ended with this answer. */
  readonly massMoved: MassMoved | null;
  /** Promises of a price's age, by their result with this answer. */
  readonly promises: PromiseCounts;
  readonly times: ApplyTimes;
}

/**
 * When an answer's transaction had compared and sent its changes, and when it had committed them (`performance.now`).
 */
interface ApplyTimes {
  readonly comparedAt: number;
  readonly committedAt: number;
  /** Whether listeners of catalog_changes were notified with the commit. */
  readonly notified: boolean;
}

const NOTHING_VANISHED = { vanished: null, vanishedMinutes: null };

interface AnswerParts {
  readonly learning?: AnswerLearning;
  readonly observers?: AnswerObservers;
}

/**
 * Applies one bulk answer in one transaction: prices and their history, metadata and its history, SKU states, and the
 * ledger. A SKU counts only if its claim is still this one: if the lease ran out, or an answer was applied before,
 * nothing changes. A SKU to which no answer is applied is not settled: if a delta has removed it since the claim, it
 * is given back, due as it was. Claims and generations, which only grow, decide this order, never a clock.
 *
 * One round trip locks and compares, a second one writes and commits; all decisions are made in between.
 */
export async function applyAnswer(
  sql: Sql,
  claim: Claim,
  results: readonly SkuResult[],
  next: NextRefresh,
  { learning = NO_LEARNING, observers = NO_OBSERVERS }: AnswerParts = {},
): Promise<Applied> {
  const settled = results.filter(({ kind }) => kind === 'record' || kind === 'not_found');
  const { everythingLive, random } = learning;
  const { locked, lockedAt, outcome, known, comparedAt } = await transaction(sql, async (tx, last) => {
    const [{ found, lockedAt, moment, massMove, againShare }, prices, products, muted] = await allSent([
      lockAnswered(tx, claim, everythingLive),
      comparePrices(tx, settled, claim.askedAt),
      compareProducts(tx, settled),
      readMuted(tx),
    ]);
    failpoint('bulk.compared');
    const isDrawn = () => random() < againShare;
    const known = { muted, massMove, watch: observers.members, isDrawn };
    const locked = found.map((row) => ({ ...row, ...(prices.vanished.get(row.sku) ?? NOTHING_VANISHED) }));
    const differences = { prices: prices.differences, products };
    const outcome = effectsOf(locked, settled, differences, learning, known);
    const comparedAt = performance.now();
    const ours = new Set(locked.map(({ sku }) => sku));
    const held = results.filter(({ sku }) => ours.has(sku));
    last(writeEffects(tx, { claim, ...moment, massMove }, held, outcome, { next, everythingLive }));
    failpoint('bulk.written');
    return { locked, lockedAt, outcome, known, comparedAt };
  });
  const committedAt = performance.now();
  const { members, massMoved } = await noteAnswer(sql, observers, outcome, known);
  const sinceLock = (committedAt - lockedAt) / 1000;
  const reported = new Map(locked.map(({ sku, reportedSeconds }) => [sku, reportedSeconds]));
  return {
    lines: outcome.lines,
    members,
    accepted: locked.length - outcome.overtaken.length,
    priceChanges: outcome.moves.length,
    metadataChanges: outcome.fields.length,
    reportSeconds: outcome.answered.flatMap(({ sku }) => {
      const seconds = reported.get(sku) ?? null;
      return seconds === null ? [] : [seconds + sinceLock];
    }),
    sizeTypeChanges: correctedMeanings(outcome.fields),
    doubted: newlyDoubted(outcome.judged),
    massMoved,
    promises: countPromises(outcome.promises),
    times: { comparedAt, committedAt, notified: hasChanges(outcome) },
  };
}

/**
 * Counts what an applied answer has shown, and stores the counts that are due. Only storing muted members can throw:
 * other counts that cannot be written now are written with those of a later answer, and mass moves are evaluated again.
 */
async function noteAnswer(
  sql: Sql,
  { members, calibration, hints, moves }: AnswerObservers,
  { members: moved, tests, ofHints, judged }: AnswerEffects,
  { muted, massMove }: Pick<AnswerContext, 'muted' | 'massMove'>,
): Promise<Pick<Applied, 'members' | 'massMoved'>> {
  const turned = await noteMembers(sql, moved, muted, members);
  calibration.note(tests);
  const counts = calibration.take();
  await storeCalibration(sql, counts).catch(() => calibration.giveBack(counts));
  hints.note(ofHints.tests, ofHints.moves, ofHints.predictionTests);
  const shown = hints.take();
  if (shown !== null && !(await storeHintTests(sql, shown).catch(() => false))) hints.giveBack(shown);
  const massMoved = await followMoves(sql, moves, judged, massMove).catch((error: unknown) => ({
    event: 'failed' as const,
    problem: `SQLSTATE ${sqlState(error)}`,
  }));
  return { members: turned, massMoved };
}

/**
 * Notes what the answer has shown about members; stores it if one is to be muted, or to be recorded again. Runs
 * outside of the answer's transaction, as every lesson does.
 */
async function noteMembers(
  sql: Sql,
  moved: readonly Moved[],
  muted: ReadonlySet<string>,
  watch: AnswerObservers['members'],
): Promise<MutedChange> {
  const noted = watch.note(moved, muted);
  const turned = { ...noted, muted: noted.muted.filter(mayBeMuted) };
  if (turned.muted.length + turned.unmuted.length + turned.renewed.length > 0) await storeMuted(sql, turned);
  return turned;
}

/** Sends everything that an outcome changes at once; it is carried out in this order. */
async function writeEffects(
  tx: Tx,
  {
    claim,
    at,
    late,
    scoped,
    massMove,
  }: { readonly claim: Claim } & AnswerMoment & Pick<AnswerContext, 'massMove'>,
  results: readonly SkuResult[],
  effects: AnswerEffects,
  settling: Settling,
): Promise<void> {
  const { answered, overtaken, prices, ahead, findings, drawn, boosted } = effects;
  await allSent([
    writeDoubts(tx, effects.judged, at),
    writeOddMoves(tx, effects.judged, massMove),
    writeProducts(tx, answered, effects, at),
    writeStates(tx, effects, at),
    writeRates(tx, ahead),
    forgetHazards(tx, boosted),
    forgetHints(tx, effects.hinted),
    forgetDrawn(tx, drawn),
    settleAnswered(tx, { claim, at }, effects, settling),
    writePromiseCases(tx, effects.promises),
    returnOvertaken(tx, claim, overtaken),
    postpone(tx, claim, results),
    scoped ? sortByScope(tx, answered) : null,
    // After everything by which prices are judged: a seller's trigger on catalog.prices reads whether to act on them.
    writePrices(tx, prices, at),
    auditRefreshes(tx, findings, at),
    writeChanges(tx, effects, at),
    doubtIfBegun(tx, effects.undoubted, at),
    late ? notingLateClock(tx, claim.askedAt) : null,
  ]);
}
