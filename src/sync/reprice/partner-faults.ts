import type { Sql } from '../../store/connection/db.ts';
import type { DueFloors } from '../../store/ledger/due-floors.ts';
import type { ClaimedSku } from '../../store/ledger/due.ts';
import { requestTask } from '../../store/ledger/tasks.ts';
import { beginOutage, endOutage, type OutageChange } from '../../store/live/limits.ts';
import type { SyncEvent } from '../events.ts';
import { answerFor, countAnswered, type Reconciliation, type SkuAnswer } from './reconciliation.ts';

/* Decides whether SKUs in errors are themselves the cause, or the partner is. */

type Answers = Reconciliation['skuAnswers'];

/** Consecutive calls with hardly anything but errors. */
export interface ErrorRun {
  readonly calls: number;
  /** SKUs in errors that had not failed before while others were answered. */
  readonly first: number;
  /** SKUs in errors, and answered ones, in the last calls. */
  readonly errors: number;
  readonly answered: number;
}

export const NO_ERRORS: ErrorRun = { calls: 0, first: 0, errors: 0, answered: 0 };

/**
 * Calls work if more than this part of the last `LAST_SKUS` SKUs (or of one larger call) was answered, not in
 * `errors`.
 */
const WORKING_PART = 0.1;
const LAST_SKUS = 300;
const RUN_CALLS = 3;
const RUN_SKUS = 3;

/** Returns the run after an answer. An answer that only defers changes nothing. Pure. */
export function afterErrors(run: ErrorRun, asked: readonly ClaimedSku[], answers: Answers): ErrorRun {
  const answered = countAnswered(asked, answers, 'record', 'not_found');
  const erring = asked.filter((each) => answerFor(each, answers).kind === 'error');
  const skus = answered + erring.length;
  const left = Math.min(1, Math.max(0, LAST_SKUS - skus) / Math.max(1, run.errors + run.answered));
  const last = { errors: left * run.errors + erring.length, answered: left * run.answered + answered };
  if (last.answered > WORKING_PART * (last.errors + last.answered)) return NO_ERRORS;
  if (erring.length === 0) return { ...run, ...last };
  const first = erring.filter(({ failures, setBack = false }) => failures <= 1 && !setBack).length;
  return { calls: run.calls + 1, first: run.first + first, ...last };
}

/**
 * Returns whether the partner is at fault: several calls in a row were nearly all errors, also of SKUs that had
 * been well.
 */
export function areGeneral({ calls, first }: ErrorRun): boolean {
  return calls >= RUN_CALLS && first >= RUN_SKUS;
}

/*
 * An outage of the partner's live source: call after call, live SKUs are in errors while the calls' other SKUs are
 * answered. None of these SKUs is the cause. They stay due, and one of them is tried now and then (liveCredit)
 * until one is answered; then the most valuable SKUs come first, as after any time without refreshes
 * (live/choose.ts).
 */

/** The error runs of the SKUs that count as live, and of the others. */
export interface ClassRuns {
  readonly live: ErrorRun;
  readonly others: ErrorRun;
}

export const NO_RUNS: ClassRuns = { live: NO_ERRORS, others: NO_ERRORS };

export interface LiveSource {
  readonly runs: ClassRuns;
  /** Whether errors of live SKUs are not their own. */
  readonly fails: boolean;
  /** Whether the answer begins or ends an outage; null: neither. */
  readonly change: OutageChange | null;
}

const ANSWERED: SkuAnswer = { kind: 'not_found' };
const isUnreadable = (answer: SkuAnswer): boolean =>
  answer.kind === 'error' && answer.because === 'unreadable';

/**
 * Judges an answer to a call that was planned in an outage since `outageSince`; null: in none. A call of the
 * outage ends it if one live SKU is answered, or if it has live SKUs and none is in errors. If nearly all other
 * SKUs are in errors, too, it is not an outage of the live source. A record that the mirror cannot read counts as
 * answered, because it was computed. Pure.
 */
export function judgeLiveSource(
  before: ClassRuns,
  asked: readonly ClaimedSku[],
  answers: Reconciliation['skuAnswers'],
  outageSince: number | null,
): LiveSource {
  const live = asked.filter((sku) => sku.live);
  const computed = new Map(
    [...answers].map(([sku, answer]) => [sku, isUnreadable(answer) ? ANSWERED : answer]),
  );
  const others = afterErrors(
    before.others,
    asked.filter((sku) => !sku.live),
    answers,
  );
  if (outageSince !== null) {
    const kinds = live.map((each) => answerFor(each, computed).kind);
    const works = kinds.some((kind) => kind === 'record' || kind === 'not_found');
    const isOver = works || (kinds.length > 0 && !kinds.includes('error'));
    return { runs: { live: NO_ERRORS, others }, fails: !isOver, change: isOver ? 'ends' : null };
  }
  const run = afterErrors(before.live, live, computed);
  const fails = live.length > 0 && areGeneral(run) && !areGeneral(others);
  return { runs: { live: run, others }, fails, change: fails ? 'begins' : null };
}

/** The members of the context of sync with which an outage is stored and reported. */
interface OutageTold {
  readonly sql: Sql;
  readonly floors: DueFloors;
  readonly emit: (event: SyncEvent) => void;
}

/** Stores and reports that an outage of the live source has begun or ended. */
export async function followOutage(
  { sql, floors, emit }: OutageTold,
  change: OutageChange | null,
): Promise<void> {
  if (change === 'begins' && (await beginOutage(sql))) {
    floors.reset();
    emit({ event: 'live-outage.began' });
  }
  if (change !== 'ends') return;
  const minutes = await endOutage(sql);
  if (minutes === null) return;
  await requestTask(sql, 'live-plan');
  emit({ event: 'live-outage.ended', minutes });
}
