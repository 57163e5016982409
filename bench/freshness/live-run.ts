import type { PaceLimits } from '../../src/pace/policy.ts';
import type { HintStream } from './hints.ts';
import type { Market } from './market.ts';
import type { SharedAccount } from './neighbours.ts';
import type { TrustAccount } from './trust.ts';

/** What a simulated run of the live SKUs is. Times in minutes. */
export interface LiveRun {
  readonly policy: 'index' | 'round-robin';
  readonly minutes: number;
  readonly limits: PaceLimits;
  /** The partner's live computations a call, and in a rolling minute (null: no ceiling). */
  readonly liveBudget: number;
  readonly liveCeiling: number | null;
  readonly redrawEveryMinutes?: number;
  /**
   * Everything has just turned live: SKUs were refreshed within the last `sweptMinutes`, and their rates are known from
   * what such refreshes showed in three days; no cap on the wait but the metadata's age.
   */
  readonly incident?: { readonly sweptMinutes: number; readonly market: Market };
  /** The account with its other users, whose traffic makes the partner refuse calls; absent: nobody is refused. */
  readonly shared?: SharedAccount;
  /** False: what is due is refreshed by due time, however much that is. */
  readonly catchesUp?: boolean;
  /** True: SKUs of a line that moves are refreshed at once (worlds.ts). */
  readonly releases?: boolean;
  /** Hints at SKUs that have perhaps moved, as they come. */
  readonly hints?: HintStream;
  /** Nobody can be asked for so long, from this minute on. */
  readonly outage?: { readonly from: number; readonly minutes: number };
  /** Looks at the market once a minute. */
  readonly everyMinute?: (minute: number) => void;
  /** Looks at what prices are worth, now and then. */
  readonly trust?: TrustAccount;
}
