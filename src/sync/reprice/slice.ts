import { isLockNotAvailable } from '../../store/connection/locks.ts';
import {
  isAnswer,
  isConflict,
  isConnectionLost,
  sqlState,
  storeFailure,
} from '../../store/connection/sql-errors.ts';
import { DEFECT, noteCallFault } from '../../store/ledger/tasks.ts';
import type { StopSignals, SyncContext } from '../context.ts';
import type { IterationResult, Iteration } from './plan-call.ts';
import { repriceOnce } from './reprice.ts';

/**
 * Why a slice planned no more calls: nothing due, a wait, its time was over, other slices of the process were
 * already planning, or the process is stopping.
 */
export const SLICE_ENDS = ['idle', 'wait', 'over', 'enough', 'stopping'] as const;
export type SliceEnd = (typeof SLICE_ENDS)[number];

export interface Slice {
  readonly calls: number;
  readonly skus: number;
  readonly end: SliceEnd;
}

/**
 * Calls that a process may have under way at once: the whole account's 200 a minute at answers of 9.6 s. Each
 * holds 100 SKUs and the memory of an answer, and an outage that answers nothing loses all of them.
 */
export const MAX_UNDER_WAY = 32;

/** How a call ended: answered and settled, failed at the partner, or with another kind of error. */
export type CallEnd = 'worked' | 'failed' | 'threw';

/**
 * Returns how many calls may be under way after one ended like this. failed: an outage would lose them all. threw:
 * Postgres may not store their answers.
 */
export function mostUnderWay(last: CallEnd): number {
  return { worked: MAX_UNDER_WAY, failed: 4, threw: 1 }[last];
}

/**
 * How long a slice plans before the next one does. After that, it waits for what it has sent, for at most the
 * request's timeout.
 */
const SLICE_MS = 10_000;
/** How often due SKUs are read again while a call lingers, because something urgent may have come. */
const LINGER_POLL_MS = 500;
/** A slice that plans no call for this long hangs: planning one and waiting for its permit take far less. */
const HANGING_MS = 30_000;

/**
 * Makes bulk calls while something is due and calls may be made, until the slice is over. The schedule wakes it
 * again at once if there is more, so a backlog of any size needs no queue of jobs that grows with it.
 * One slice of the process plans at a time, and plans the next call as soon as the previous one has been sent. So
 * as many calls are under way as the pace permits and their answers need, and no other slice of this process is
 * about to claim from the ledger that a call is planned from. A second slice stands ready to take over, even if
 * the first one hangs; others wait for as long as a slice takes, so that the queue gives further jobs to other
 * processes. A slice ends when all its calls have ended, and rejects with the first error that one of them threw.
 * After a call that did not work, fewer are under way until one works (mostUnderWay).
 */
export function createSlice(ctx: Pick<SyncContext, 'clock'>, callOnce: CallOnce) {
  const { clock } = ctx;
  const turn = new PlanningLock();
  const underWay = new Set<Promise<void>>();
  let last: CallEnd = 'worked';
  let lastCallAt = -Infinity;

  /** Plans and sends calls until none can be made, and returns why. */
  async function sendCalls(sent: SentCalls, signals: StopSignals): Promise<SliceEnd> {
    const end = clock.monotonic() + SLICE_MS;
    while (clock.monotonic() < end) {
      if (signals.stopping.aborted) return 'stopping';
      if (sent.toWait) return 'wait';
      if (underWay.size >= mostUnderWay(last)) {
        await Promise.race(underWay);
        continue;
      }
      const iteration = { sinceLastCallMs: clock.monotonic() - lastCallAt };
      const done = await untilSent((onSent) => callOnce(iteration, signals, onSent));
      if (done.kind === 'sent') {
        lastCallAt = clock.monotonic();
        sent.add(done.call, underWay, (end) => (last = end));
      } else if (done.kind === 'linger') {
        await clock.sleep(Math.min(done.forMs, LINGER_POLL_MS), signals.stopping);
      } else if (done.kind !== 'called') return done.kind;
    }
    return 'over';
  }

  return async (stopping: AbortSignal, hard: AbortSignal): Promise<Slice> => {
    const hangs = () => clock.sleep(HANGING_MS, stopping);
    let holder = await turn.take(hangs);
    if (holder === null) {
      await clock.sleep(SLICE_MS, stopping);
      holder = await turn.take(hangs);
    }
    if (holder === null) return { calls: 0, skus: 0, end: 'enough' };
    const sent = new SentCalls();
    let end: SliceEnd = 'wait';
    try {
      end = await sendCalls(sent, { stopping, hard });
    } catch (error) {
      sent.fail(error);
    } finally {
      turn.pass(holder);
    }
    return { ...(await sent.ended()), end };
  };
}

/** `repriceOnce` with the arguments that are the same for each iteration of a process. */
export type CallOnce = (
  iteration: Pick<Iteration, 'sinceLastCallMs'>,
  signals: StopSignals,
  onSent: () => void,
) => Promise<IterationResult>;

export function repriceSlices(ctx: SyncContext, requestTimeoutMs: number) {
  return createSlice(ctx, (iteration, signals, onSent) =>
    countingFaults(ctx, signals, () => repriceOnce(ctx, iteration, requestTimeoutMs, signals, onSent)),
  );
}

type StartedIteration = IterationResult | { readonly kind: 'sent'; readonly call: Promise<IterationResult> };

/** Begins an iteration. Returns its call once that has been sent, or how it ended without one. */
async function untilSent(begin: (onSent: () => void) => Promise<IterationResult>): Promise<StartedIteration> {
  const { promise: sent, resolve: onSent } = Promise.withResolvers<null>();
  const call = begin(() => onSent(null));
  const first = await Promise.race([sent, call]);
  return first ?? { kind: 'sent', call };
}

/** The calls sent by one slice. */
class SentCalls {
  /** Whether a call has failed in such a way that none should be made now. */
  toWait = false;
  readonly #ended: Promise<void>[] = [];
  readonly #errors: unknown[] = [];
  #calls = 0;
  #skus = 0;

  /** Follows a call to its end, keeps it in `underWay` until then, and passes on how it ended. */
  add(call: Promise<IterationResult>, underWay: Set<Promise<void>>, tell: (end: CallEnd) => void): void {
    const ended = this.#follow(call)
      .then(tell)
      .finally(() => underWay.delete(ended));
    underWay.add(ended);
    this.#ended.push(ended);
  }

  fail(error: unknown): void {
    this.toWait = true;
    this.#errors.push(error);
  }

  /** Waits for all calls. Throws the first error. */
  async ended(): Promise<Pick<Slice, 'calls' | 'skus'>> {
    await Promise.all(this.#ended);
    if (this.#errors.length > 0) throw this.#errors[0];
    return { calls: this.#calls, skus: this.#skus };
  }

  async #follow(call: Promise<IterationResult>): Promise<CallEnd> {
    try {
      const done = await call;
      if (done.kind === 'called') {
        this.#calls += 1;
        this.#skus += done.skus;
      } else if (done.kind === 'wait') this.toWait = true;
      return done.kind === 'called' && done.skus > 0 ? 'worked' : 'failed';
    } catch (error) {
      this.fail(error);
      return 'threw';
    }
  }
}

/** A lock that one slice holds and at most one waits for. */
class PlanningLock {
  #holder: symbol | null = null;
  #next: { readonly holder: symbol; readonly go: () => void } | null = null;

  /**
   * Takes the turn to plan. Returns a token that `pass` needs; null, at once, if another caller is already
   * waiting. A holder that keeps the turn for as long as `hangs` takes loses it.
   */
  async take(hangs: () => Promise<void>): Promise<symbol | null> {
    const holder = Symbol('turn');
    if (this.#holder !== null) {
      if (this.#next !== null) return null;
      const { promise: passed, resolve: go } = Promise.withResolvers<void>();
      this.#next = { holder, go };
      await Promise.race([passed, hangs()]);
      this.#next = null;
    }
    this.#holder = holder;
    return holder;
  }

  /** Passes the turn on, unless another caller has taken it meanwhile. */
  pass(holder: symbol): void {
    if (this.#holder !== holder) return;
    this.#holder = this.#next?.holder ?? null;
    this.#next?.go();
  }
}

/**
 * Returns how an error that ends a bulk call is counted (callFaults): by its SQLSTATE, or as DEFECT. Null if the
 * judge of health learns of it in another way, or if it passes by itself: Postgres is away or takes no writes,
 * somebody holds a lock, the transaction was the victim of a conflict. Pure.
 */
export function faultKind(error: unknown): string | null {
  if (isConnectionLost(error) || storeFailure(error) !== null) return null;
  if (isConflict(error) || isLockNotAvailable(error)) return null;
  return isAnswer(error) ? sqlState(error) : DEFECT;
}

/** Counts what `work` throws. A fault that cannot be counted is left out: the next one counts as the first. */
async function countingFaults<T>(
  { sql }: Pick<SyncContext, 'sql'>,
  { stopping }: Pick<StopSignals, 'stopping'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const kind = stopping.aborted ? null : faultKind(error);
    if (kind !== null) await noteCallFault(sql, kind).catch(() => {});
    throw error;
  }
}
