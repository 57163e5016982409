import { PartnerError } from '../partner/errors.ts';
import type { SyncContext } from './context.ts';
import { PATIENCE_MS } from './outcome.ts';
import type { SentPermit } from './pacing.ts';

export type Asked<T> =
  | { readonly kind: 'answer'; readonly value: T }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: string }
  | { readonly kind: 'error'; readonly error: PartnerError };

/** Sends one request when its turn comes: the answer, or how long to wait instead, or what went wrong, as a value. */
export async function ask<T>(
  ctx: SyncContext,
  lane: string,
  send: (permit: SentPermit) => Promise<T>,
  signal?: AbortSignal,
): Promise<Asked<T>> {
  const turn = await ctx.pacer.acquire(lane, PATIENCE_MS, signal);
  if (turn.kind === 'wait') return turn;
  try {
    return { kind: 'answer', value: await send(turn.permit) };
  } catch (error) {
    if (error instanceof PartnerError) return { kind: 'error', error };
    throw error;
  }
}
