import type { Permit } from '../partner/client.ts';
import type { PaceWait } from './policy.ts';

/* What the pacer returns: a permit for one request, or how long to wait. */

/** What a request may be for, as permits and metrics name it. */
export const REQUEST_LANES = ['reprice', 'delta', 'manifest'] as const;
/** Fixed labels of metrics: the third means a back-off, the fourth a half-open request under way. */
export const PACE_WAITS: readonly PaceWait[] = ['spacing', 'window', 'silence', 'probe', 'paused'];

export interface SentPermit extends Permit {
  /** The first request after a back-off: its answer shows whether the account's requests are let through again. */
  readonly halfOpen: boolean;
  /** Consecutive refusals before it, with nothing let through in between. */
  readonly refusals: number;
  /** Whether its refusal began a back-off, as the first since others were let through. Known once it is settled. */
  readonly beganBackoff: () => boolean;
  /** Returns the slot; nothing was sent. */
  cancel(): Promise<void>;
  /**
   * Returns whether the permit was not used in time (process or host suspended), so that its logged send time no
   * longer matches when it would leave.
   */
  lapsed(): boolean;
}

/** Why no permit was given: what the pacer waits for, or the process is stopping. */
export type PutOff = PaceWait | 'stopping';

/** A permit, or how long to wait before asking again. */
export type Acquired =
  | {
      readonly kind: 'granted';
      readonly permit: SentPermit;
      /** Whether there was a wait for it, so that what the caller knew when it asked may be out of date. */
      readonly waited: boolean;
    }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: PutOff };

export interface Pacer {
  /**
   * Requests a permit to send one request now. Waits up to `maxWaitMs`; a longer wait is returned as a value, so
   * that the caller can release its worker. `lane` is stored in the log of sends.
   */
  acquire(lane: string, maxWaitMs: number, signal?: AbortSignal): Promise<Acquired>;
}
