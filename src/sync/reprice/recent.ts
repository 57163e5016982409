import type { ClaimedSku } from '../../store/ledger/due.ts';
import {
  type AfterAsks,
  afterAsks,
  areAlike,
  areRecovering,
  type Asks,
  type LiveAsks,
  NOTHING_REMEMBERED,
} from '../live/again.ts';
import type { Reconciliation, SkuAnswer } from './reconciliation.ts';

/*
 * What recent answers to this process show about failing SKUs: is the SKU at fault, or the partner? In memory; a new
 * process relearns it within minutes.
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
  const isKind = ({ sku }: ClaimedSku, ...kinds: readonly SkuAnswer['kind'][]) =>
    kinds.includes(answers.get(sku)?.kind ?? 'error');
  const answered = asked.filter((each) => isKind(each, 'record', 'not_found')).length;
  const erring = asked.filter((each) => isKind(each, 'error'));
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

/** What a call's answer showed of its live SKUs. Pure. */
export function liveAsks(asked: readonly ClaimedSku[], answers: Answers, at: number): LiveAsks {
  const asks = (from: number, to: number): Asks => {
    const kinds = asked
      .filter(({ live, deferrals }) => live && deferrals >= from && deferrals <= to)
      .map(({ sku }) => answers.get(sku)?.kind ?? 'error');
    const deferred = kinds.filter((kind) => kind === 'deferred').length;
    return { asked: kinds.filter((kind) => kind !== 'error').length, deferred };
  };
  return { at, first: asks(0, 0), second: asks(1, 1), later: asks(2, Infinity) };
}

/** Answers in a row that say that fewer SKUs were read than were asked. */
export interface ShortRun {
  /** How many were read, each time. */
  readonly read: number;
  readonly answers: number;
  /** SKUs of the first of these calls, and whether others had another number. */
  readonly asked: number;
  readonly differ: boolean;
}

export const NO_SHORT: ShortRun = { read: 0, answers: 0, asked: 0, differ: false };

const SHORT_ANSWERS = 3;

/**
 * The run after an answer to a call of `asked` SKUs; `read` is null where all of them were read. An answer to a call
 * that is no larger than what was read each time changes nothing. Pure.
 */
export function afterShort(run: ShortRun, asked: number, read: number | null): ShortRun {
  if (read === null) return asked > run.read ? NO_SHORT : run;
  if (read !== run.read) return { read, answers: 1, asked, differ: false };
  return { ...run, answers: run.answers + 1, differ: run.differ || asked !== run.asked };
}

/**
 * Whether the partner reads no more than so many SKUs of a call, in an order of its own: it has read as many of calls
 * of several sizes. Were it for SKUs that it passes over, a larger call would have more of both.
 */
export function readsNoMore({ answers, differ }: ShortRun): boolean {
  return answers >= SHORT_ANSWERS && differ;
}

/** Kept by each process for itself, and bounded: minutes of live asks. */
export class RecentAnswers {
  #asks = NOTHING_REMEMBERED;
  #errors = NO_ERRORS;
  #short = NO_SHORT;
  #works = false;

  /**
   * Takes in an answer that says how many SKUs of `asked` were read (null: all). Returns whether the partner reads no
   * more of a call.
   */
  noteRead(asked: number, read: number | null): boolean {
    this.#short = afterShort(this.#short, asked, read);
    return read !== null && readsNoMore(this.#short);
  }

  /**
   * Whether a call of which the partner has read no SKU says something of its SKUs, and nothing of how they are asked:
   * all have failed while others were answered, or it is a single one, and the answer before named others.
   */
  arePassedOver(asked: readonly ClaimedSku[]): boolean {
    return asked.every(({ setBack = false }) => setBack) || (asked.length === 1 && this.#works);
  }

  /** Takes in an answer before it is applied. Returns whether the partner is at fault for its errors. */
  noteErrors(asked: readonly ClaimedSku[], answers: Answers): boolean {
    this.#works = asked.some(({ sku }) => (answers.get(sku)?.kind ?? 'error') !== 'error');
    this.#errors = afterErrors(this.#errors, asked, answers);
    return areGeneral(this.#errors);
  }

  /** Live SKUs that had been deferred again and again are being computed again. */
  get recovering(): boolean {
    return areRecovering(this.#asks);
  }

  /**
   * Takes in what an answer that came at `at` shows about live SKUs. Returns how to treat those that it defers
   * (again.ts).
   */
  noteLive(
    asked: readonly ClaimedSku[],
    answers: Answers,
    at: number,
  ): Omit<AfterAsks, 'remembered'> & { readonly alike: boolean } {
    const { remembered, ...shown } = afterAsks(this.#asks, liveAsks(asked, answers, at));
    this.#asks = remembered;
    return { ...shown, alike: areAlike(remembered, at) };
  }
}
