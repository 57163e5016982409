import type { AnyLine, EventName } from '../declared/log-events.ts';
import type { RequestOutcome } from '../partner/errors.ts';
import type { PromiseCounts } from '../store/sellers/promises.ts';
import type { Failure } from './outcome.ts';

/** An event inside a run that metrics count, or that is not logged each time. */
type CountedEvent =
  | {
      readonly event: 'manifest.downloaded';
      readonly outcome: RequestOutcome;
      readonly status: number | undefined;
      readonly ms: number;
    }
  | {
      readonly event: 'manifest.rejected-lines';
      readonly rejected: number;
      readonly reasons: Readonly<Record<string, number>>;
    }
  | { readonly event: 'manifest.kept-file'; readonly keptSince: Date; readonly builtAt: Date }
  | {
      readonly event: 'manifest.live-count-differs';
      readonly live: number;
      readonly announced: number | null;
    }
  | {
      readonly event: 'delta.applied';
      readonly toSnapshot: string;
      readonly changed: number;
      readonly removed: number;
      readonly nowLive: number;
      readonly newSkus: number;
      readonly crossedToLive: number;
      readonly crossedToSnapshot: number;
      readonly skipped: number;
    }
  | ({ readonly event: 'delta.chain-broken' } & Failure)
  | {
      readonly event: 'bulk.applied';
      readonly asked: number;
      readonly resolved: number;
      readonly notFound: number;
      readonly deferred: number;
      readonly errors: number;
      readonly omitted: number;
      readonly contradictory: number;
      readonly unreadable: number;
      readonly unexpected: number;
      readonly late: number;
      readonly priceChanges: number;
      readonly metadataChanges: number;
      readonly unpricedEntries: number;
      /** Seconds from each delta report that is answered to the answer's commit. */
      readonly reportSeconds: readonly number[];
      /** Promises of a price's age, by what the answer made of them. */
      readonly promises: PromiseCounts;
    }
  /** `sku`: the only SKU of the call, if a call with it alone has failed before. */
  | ({
      readonly event: 'bulk.failed';
      readonly skus: number;
      readonly sku?: string;
      readonly pausedMs: number;
    } & Failure)
  | { readonly event: 'size-type.changed'; readonly skus: readonly string[] };

/**
 * What happens inside a run: events that are counted or summed up, and all others of the log. A run's end is its
 * TaskOutcome.
 */
export type SyncEvent = CountedEvent | AnyLine<Exclude<EventName, CountedEvent['event']>>;
