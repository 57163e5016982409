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
import { afterEnded, doubtStep, type EndedCall, isLiveAway, NO_DOUBT } from './live-doubt.ts';
import {
  afterErrors,
  areGeneral,
  NO_ERRORS,
  judgeLiveSource,
  type LiveSource,
  NO_RUNS,
} from './partner-faults.ts';
import { afterTurn, FIRST_TURNS, type Iteration, type PlannedCall } from './plan-call.ts';
import { answerFor, countAnswered, type Reconciliation } from './reconciliation.ts';

/*
 * What this process's recent answers show about failing SKUs: is the SKU at fault, or the partner? Held in memory;
 * a new process learns it again within minutes.
 */

type Answers = Reconciliation['skuAnswers'];

/** Returns what a call's answer showed of its live SKUs. Pure. */
function liveAsks(asked: readonly ClaimedSku[], answers: Answers, at: number): LiveAsks {
  const asks = (from: number, to: number): Asks => {
    const those = asked.filter(({ live, deferrals }) => live && deferrals >= from && deferrals <= to);
    const deferred = countAnswered(those, answers, 'deferred');
    return { asked: deferred + countAnswered(those, answers, 'record', 'not_found'), deferred };
  };
  return { at, first: asks(0, 0), second: asks(1, 1), later: asks(2, Infinity) };
}

/** Consecutive answers that say that fewer SKUs were read than were asked. */
export interface ShortRun {
  /** How many were read each time. */
  readonly read: number;
  readonly answers: number;
  /** SKUs of the first of these calls, and whether other calls had a different number. */
  readonly asked: number;
  readonly differ: boolean;
}

export const NO_SHORT: ShortRun = { read: 0, answers: 0, asked: 0, differ: false };

const SHORT_ANSWERS = 3;

/**
 * Returns the run after an answer to a call of `asked` SKUs. `read`: how many of them were read, null: all. An
 * answer to a call that is no larger than what was read each time changes nothing. Pure.
 */
export function afterShort(run: ShortRun, asked: number, read: number | null): ShortRun {
  if (read === null) return asked > run.read ? NO_SHORT : run;
  if (read !== run.read) return { read, answers: 1, asked, differ: false };
  return { ...run, answers: run.answers + 1, differ: run.differ || asked !== run.asked };
}

/**
 * Returns whether the partner reads only a fixed number of SKUs of a call, in an order of its own: it has read the
 * same number in calls of different sizes. If it passed over certain SKUs instead, a larger call would have more
 * of both.
 */
export function readsNoMore({ answers, differ }: ShortRun): boolean {
  return answers >= SHORT_ANSWERS && differ;
}

/** Remembers recent answers, per process and bounded: minutes of live asks. */
export class RecentAnswers {
  #asks = NOTHING_REMEMBERED;
  #errors = NO_ERRORS;
  #classes = NO_RUNS;
  #short = NO_SHORT;
  #doubt = NO_DOUBT;
  #loneUnderWay = false;
  #turns = FIRST_TURNS;
  /** Whether the last answer named SKUs; and whether any did since a call of which none was read. */
  #names = false;
  #works = true;

  /**
   * Notes an answer that says how many SKUs of `asked` were read (null: all). Returns whether the partner reads no
   * more of a call.
   */
  noteRead(asked: number, read: number | null): boolean {
    this.#short = afterShort(this.#short, asked, read);
    return read !== null && readsNoMore(this.#short);
  }

  /**
   * Notes an answer for which the partner has read no SKU. Returns whether these SKUs are the cause, and not how
   * they are asked: all of them have failed while others were answered, or the call had a single SKU, and the
   * answer before named some. After a false result, both conditions fail until an answer names SKUs again; the
   * second one fails after a true result, too.
   */
  notePassedOver(asked: readonly ClaimedSku[]): boolean {
    const arePassedOver =
      (this.#works && asked.every(({ setBack = false }) => setBack)) || (asked.length === 1 && this.#names);
    this.#works &&= arePassedOver;
    this.#names = false;
    return arePassedOver;
  }

  /** Notes an answer before it is applied. Returns whether the partner is at fault for its errors. */
  noteErrors(asked: readonly ClaimedSku[], answers: Answers): boolean {
    this.#names = asked.some((each) => answerFor(each, answers).kind !== 'error');
    this.#works ||= this.#names;
    this.#errors = afterErrors(this.#errors, asked, answers);
    return areGeneral(this.#errors);
  }

  /** Notes an answer before it is applied. Returns what it shows about the live source (judgeLiveSource). */
  noteLiveSource(
    asked: readonly ClaimedSku[],
    answers: Answers,
    outageSince: number | null,
  ): Omit<LiveSource, 'runs'> {
    const { runs, ...shown } = judgeLiveSource(this.#classes, asked, answers, outageSince);
    this.#classes = runs;
    return shown;
  }

  /** What the next call should show about the live source, and whether a live SKU is being tried by itself. */
  get liveDoubt(): Pick<Iteration, 'doubt' | 'loneUnderWay'> {
    return { doubt: doubtStep(this.#doubt), loneUnderWay: this.#loneUnderWay };
  }

  get turns(): Iteration['turns'] {
    return this.#turns;
  }

  /** Notes how a call ended. Returns whether the live source turns out to be what fails (live-doubt.ts). */
  noteEnded(call: EndedCall): boolean {
    this.#doubt = afterEnded(this.#doubt, call);
    const isAway = isLiveAway(this.#doubt);
    if (isAway) this.#doubt = NO_DOUBT;
    return isAway;
  }

  /** Notes whose turn a call was, even if nothing was left to claim for it, so that another's is next. */
  noteTurn(planned: Pick<PlannedCall, 'lone' | 'wanted' | 'packing'>): void {
    this.#turns = afterTurn(this.#turns, planned);
  }

  /** Makes a planned call. While one with a single live SKU (`lone`) is under way, no second one is planned. */
  async during<T>(
    planned: Pick<PlannedCall, 'lone' | 'wanted' | 'packing'>,
    call: () => Promise<T>,
  ): Promise<T> {
    this.noteTurn(planned);
    if (!planned.lone) return await call();
    this.#loneUnderWay = true;
    try {
      return await call();
    } finally {
      this.#loneUnderWay = false;
    }
  }

  /** Whether live SKUs that had been deferred again and again are being computed again. */
  get recovering(): boolean {
    return areRecovering(this.#asks);
  }

  /**
   * Notes what an answer that came at `at` shows about live SKUs. Returns how to treat those that it defers
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
