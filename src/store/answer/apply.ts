import { failpoint } from '../../lib/failpoint.ts';
import { auditRefreshes } from '../catalog/audit.ts';
import { notingLateClock } from '../clock.ts';
import { type Sql, transaction, type Tx } from '../connection/db.ts';
import { correctedMeanings, hasChanges, writeChanges } from '../history/changes.ts';
import type { Claim } from '../ledger/due.ts';
import { forgetDrawn, forgetHazards, writeRates } from '../live/live.ts';
import { forgetHints, storeHintTests } from '../sellers/hints.ts';
import { countPromises, writePromiseCases } from '../sellers/promises.ts';
import { sortByScope } from '../sellers/scope.ts';
import { storeLooks } from '../trust/calibration.ts';
import { comparePrices, compareProducts } from './differences.ts';
import { doubtsOf, writeDoubts } from './doubted.ts';
import { type AnswerEffects, effectsOf } from './effects.ts';
import { type AnswerMoment, lockAnswered } from './lock.ts';
import { followMoves } from './mass-moves.ts';
import type { Moved, MutedChange } from './members.ts';
import { readMuted, storeMuted } from './muted.ts';
import { postpone, returnOvertaken, settleAnswered, writeStates } from './settle.ts';
import type { SkuResult, NextRefresh, Applied } from './types.ts';
import { writePrices, writeProducts } from './writes.ts';

/**
 * Applies one bulk answer in one transaction: prices and their history, metadata and its history, SKU states, and the
 * ledger. A SKU counts only where the claim is still this one: a lease that ran out, or an answer applied before,
 * changes nothing. What no answer is applied to is not settled by it: a SKU that a delta has removed since the claim
 * is given back, due as it was. All this is ordered by claim and generation, which only grow, and never by a clock.
 *
 * One round trip locks and compares, and one writes and commits; in between it is decided what follows.
 */
export async function applyAnswer(
  sql: Sql,
  claim: Claim,
  results: readonly SkuResult[],
  next: NextRefresh,
): Promise<Applied> {
  const settled = results.filter(({ kind }) => kind === 'record' || kind === 'not_found');
  const { marks, reported, moved, muted, tests, ofHints, judged, massMove, ...applied } = await transaction(
    sql,
    async (tx, last) => {
      const [{ locked, lockedAt, moment, massMove }, prices, products, muted] = await Promise.all([
        lockAnswered(tx, claim, next.everythingLive ?? false),
        comparePrices(tx, settled),
        compareProducts(tx, settled),
        readMuted(tx),
      ]);
      failpoint('bulk.compared');
      const outcome = effectsOf(locked, settled, { prices, products }, next, { muted, massMove });
      const comparedAt = performance.now();
      last(writeEffects(tx, { claim, ...moment }, results, outcome, next));
      failpoint('bulk.written');
      return {
        accepted: locked.length - outcome.overtaken.length,
        priceChanges: outcome.moves.length,
        metadataChanges: outcome.fields.length,
        sizeTypeChanges: correctedMeanings(outcome.fields),
        reported: outcome.answered.flatMap(
          ({ sku }) => locked.find((row) => row.sku === sku)?.reportedSeconds ?? [],
        ),
        marks: { lockedAt, comparedAt, notified: hasChanges(outcome) },
        moved: outcome.members,
        muted,
        tests: outcome.tests,
        ofHints: outcome.ofHints,
        judged: outcome.judged,
        massMove,
        lines: outcome.lines,
        promises: countPromises(outcome.promises),
      };
    },
  );
  const { lockedAt, ...times } = { ...marks, committedAt: performance.now() };
  const members = await noteMembers(sql, moved, muted, next);
  next.looks?.note(tests);
  const counts = next.looks?.take() ?? [];
  // What was applied stays applied: counts that cannot be written now are written with the next ones.
  await storeLooks(sql, counts).catch(() => next.looks?.giveBack(counts));
  next.hints?.note(ofHints.tests, ofHints.moves, ofHints.told);
  const shown = next.hints?.take() ?? null;
  if (shown !== null && !(await storeHintTests(sql, shown).catch(() => false))) next.hints?.giveBack(shown);
  const sinceLock = (performance.now() - lockedAt) / 1000;
  // As little as those counts may this fail what was applied: the next answer tries again.
  const massMoved = await followMoves(sql, next.moves, judged, massMove).catch(() => null);
  return {
    ...applied,
    times,
    members,
    massMoved,
    ...doubtsOf(judged),
    reportSeconds: reported.map((seconds) => seconds + sinceLock),
  };
}

/**
 * What the answer has shown of members; stored where one is to be muted, or heard again. Outside of its transaction,
 * as every lesson.
 */
async function noteMembers(
  sql: Sql,
  moved: readonly Moved[],
  muted: ReadonlySet<string>,
  { members: watch }: NextRefresh,
): Promise<MutedChange> {
  const turned = watch?.note(moved, muted) ?? { muted: [], unmuted: [] };
  if (turned.muted.length + turned.unmuted.length > 0) await storeMuted(sql, turned);
  return turned;
}

/** Sends everything that an outcome changes in one go; it is carried out in this order. */
async function writeEffects(
  tx: Tx,
  { claim, at, late, scoped }: { readonly claim: Claim } & AnswerMoment,
  results: readonly SkuResult[],
  effects: AnswerEffects,
  next: NextRefresh,
): Promise<void> {
  const { answered, overtaken, prices, ahead, findings, drawn, boosted } = effects;
  await Promise.all([
    writePrices(tx, prices, at),
    writeDoubts(tx, effects.judged, at),
    writeProducts(tx, answered, effects, at),
    writeStates(tx, effects, at),
    writeRates(tx, ahead),
    forgetHazards(tx, boosted),
    forgetHints(tx, effects.hinted),
    forgetDrawn(tx, drawn),
    settleAnswered(tx, { claim, at }, effects, next),
    writePromiseCases(tx, effects.promises),
    returnOvertaken(tx, claim, overtaken),
    postpone(tx, claim, results),
    scoped ? sortByScope(tx, answered) : null,
    auditRefreshes(tx, findings, at),
    writeChanges(tx, effects, at),
    late ? notingLateClock(tx, claim.askedAt) : null,
  ]);
}
