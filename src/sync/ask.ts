import type { PutOff, SentPermit } from '../pace/permit.ts';
import { OUTAGE_KINDS, PartnerError } from '../partner/errors.ts';
import { endCallPause } from '../store/ledger/tasks.ts';
import type { SyncContext } from './context.ts';
import { acquireTraced, callTraced } from './traces.ts';

/** How a request ended: answered, without a permit (it should wait `forMs` milliseconds), or failed. */
export type Asked<T> =
  | { readonly kind: 'answer'; readonly value: T }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: PutOff }
  | FailedRequest;

export interface FailedRequest {
  readonly kind: 'error';
  readonly error: PartnerError;
  /** Whether its refusal began a back-off: requests before it were let through. */
  readonly beganBackoff: boolean;
}

/**
 * Sends one request once it gets a permit. Returns the answer, how long to wait instead, or the PartnerError, as a
 * value. An answer, or an error with a code of the partner's own, shows that an outage is over, so it ends a pause
 * of bulk calls due to OUTAGE_KINDS. An answer ends any pause if this route's last runs (`failuresBefore`) had
 * failed, because a gateway that is down may answer bulk calls with anything, even a 400.
 */
export async function ask<T>(
  ctx: SyncContext,
  lane: 'manifest' | 'delta',
  send: (permit: SentPermit) => Promise<T>,
  failuresBefore: number,
  signal?: AbortSignal,
): Promise<Asked<T>> {
  const acquired = await acquireTraced(ctx, lane, signal);
  if (acquired.kind === 'wait') return acquired;
  const asked = await callTraced(ctx, lane, {}, () => send(acquired.permit)).then(
    (value): Asked<T> => ({ kind: 'answer', value }),
    (error: unknown): Asked<T> => {
      if (error instanceof PartnerError)
        return { kind: 'error', error, beganBackoff: acquired.permit.beganBackoff() };
      throw error;
    },
  );
  if (asked.kind === 'answer' || (asked.kind === 'error' && asked.error.code !== undefined))
    await endCallPause(ctx.sql, asked.kind === 'answer' && failuresBefore > 0 ? null : OUTAGE_KINDS);
  return asked;
}
