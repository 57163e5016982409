import type { SyncContext } from '../context.ts';
import { repriceOnce } from './reprice.ts';

/** Why a slice ended: nothing due, a wait, its time was over, or the process is stopping. */
export const SLICE_ENDS = ['idle', 'wait', 'over', 'stopping'] as const;

export interface Slice {
  readonly calls: number;
  readonly skus: number;
  readonly end: (typeof SLICE_ENDS)[number];
}

/** Far below the queue's lock: a job that outlasts its lock would be started again by another worker. */
const SLICE_MS = 10_000;
/** While a call lingers, what is due is read again after this: something urgent may have come. */
const LINGER_POLL_MS = 500;

/**
 * Iterations of re-pricing one after the other, until nothing is due, it is not the time to call, or the slice is over. The
 * schedule wakes it again at once if there is more: one worker is never occupied for long, and a backlog of any size is
 * processed without a queue of jobs that grows with it.
 */
export function createSlice(ctx: SyncContext, requestTimeoutMs: number) {
  let number = 0;
  let lastCallAt = -Infinity;
  return async (stopping: AbortSignal, hard: AbortSignal): Promise<Slice> => {
    const end = ctx.clock.monotonic() + SLICE_MS;
    let calls = 0;
    let skus = 0;
    while (ctx.clock.monotonic() < end) {
      if (stopping.aborted) return { calls, skus, end: 'stopping' };
      number += 1;
      const iteration = { number, sinceLastCallMs: ctx.clock.monotonic() - lastCallAt };
      const done = await repriceOnce(ctx, iteration, requestTimeoutMs, { stopping, hard });
      if (done.kind === 'linger') {
        await ctx.clock.sleep(Math.min(done.forMs, LINGER_POLL_MS), stopping);
        continue;
      }
      if (done.kind !== 'called') return { calls, skus, end: done.kind };
      lastCallAt = ctx.clock.monotonic();
      calls += 1;
      skus += done.skus;
    }
    return { calls, skus, end: 'over' };
  };
}
