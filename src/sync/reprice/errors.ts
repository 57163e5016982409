import type { ClaimedSku } from '../../store/ledger/due.ts';
import { answerFor, countAnswered, type Reconciliation } from './reconciliation.ts';

/*
 * Whether SKUs in errors are themselves the reason, or the partner.
 */

type Answers = Reconciliation['skuAnswers'];

/** Calls in a row that have hardly anything but errors. */
export interface ErrorRun {
  readonly calls: number;
  /** SKUs in errors that had not failed before while others were answered. */
  readonly first: number;
  /** SKUs in errors, and answered ones, of the last calls. */
  readonly errors: number;
  readonly answered: number;
}

export const NO_ERRORS: ErrorRun = { calls: 0, first: 0, errors: 0, answered: 0 };

/**
 * Calls work if more than this part of the last `LAST_SKUS` SKUs (or of one larger call) was answered, not in `errors`.
 */
const WORKING_PART = 0.1;
const LAST_SKUS = 300;
const RUN_CALLS = 3;
const RUN_SKUS = 3;

/** The run after an answer. An answer that only defers changes nothing. Pure. */
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

/** Whether the partner is at fault: several calls in a row were nearly all errors, some of SKUs that had been well. */
export function areGeneral({ calls, first }: ErrorRun): boolean {
  return calls >= RUN_CALLS && first >= RUN_SKUS;
}
