import type { Permit } from '../partner/client.ts';
import type { PaceWait } from './policy.ts';

/* What the pace gives out: a permit for one request, or how long to wait. */

/** What a request may be for, as permits and metrics name it. */
export const REQUEST_LANES = ['reprice', 'delta', 'manifest'] as const;
/** Labels of metrics, which stay as they are: the third is a back-off, the fourth a half-open request under way. */
export const PACE_WAITS: readonly PaceWait[] = ['spacing', 'window', 'silence', 'probe', 'paused'];

export interface SentPermit extends Permit {
  /** The first request after a back-off: its answer tells whether the account's requests are let through again. */
  readonly halfOpen: boolean;
  /** Refusals in a row before it, with nothing let through in between. */
  readonly refusals: number;
  /**
   * Whether its refusal has begun a back-off: it was the first since others were let through. Known once it is settled.
   */
  readonly beganBackoff: () => boolean;
  /** Returns the slot: nothing was sent. */
  cancel(): Promise<void>;
  /**
   * The permit was not used in time (process or host suspended): its logged send time no longer matches when it would
   * leave.
   */
  lapsed(): boolean;
}

/** Why no permit was given: what the pace waits for, or the process is stopping. */
export type PutOff = PaceWait | 'stopping';

/** A permit, or how long to wait before asking again. */
export type Acquired =
  | {
      readonly kind: 'granted';
      readonly permit: SentPermit;
      /** Whether it had to be waited for: what the caller knew when it asked may be out of date. */
      readonly waited: boolean;
    }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: PutOff };

export interface Pacer {
  /**
   * A permit to send one request now. Waits up to `maxWaitMs` for its permit; a longer wait comes back as a value, so
   * that the caller can release its worker. `lane` is stored in the log of sends.
   */
  acquire(lane: string, maxWaitMs: number, signal?: AbortSignal): Promise<Acquired>;
}
