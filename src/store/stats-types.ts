import type { IncidentCause } from './incident.ts';
import type { TaskState } from './tasks.ts';

/** A distribution over SKUs as it is now. `le` are upper bounds in seconds, `count` is cumulative (Prometheus histogram form). */
export interface AgeDistribution {
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly count: number;
  readonly sumSeconds: number;
}

/** How well the delta and the mirror's own looks agree (view catalog.delta_audit), counted since `since`. */
export interface DeltaAudit {
  readonly since: Date;
  readonly reportsConfirmed: number;
  readonly reportsUnchanged: number;
  readonly movesSeenFirst: number;
  /** By how long these were seen before their reports, in all. */
  readonly seenFirstSeconds: number;
  readonly movesNeverReported: number;
  readonly movesWaiting: number;
}

/** What takes a scan of the catalog to count, all of it as of one moment. Ages in seconds. */
export interface CatalogFigures {
  readonly countedAt: Date;
  /** How long counting took, in milliseconds. */
  readonly countedInMs: number;
  readonly skus: readonly { state: string; priceSource: 'snapshot' | 'live' | 'unknown'; count: number }[];
  readonly priceAge: readonly { priceSource: string; ages: AgeDistribution; oldestSeconds: number }[];
  readonly freshSkus: readonly { priceSource: string; count: number }[];
  readonly metadataAge: AgeDistribution;
  readonly oldestMetadataAgeSeconds: number;
  readonly due: readonly { reason: string; count: number; oldestAgeSeconds: number }[];
  readonly deferredSkus: number;
  readonly oldestDeferredAgeSeconds: number;
}

/** The mirror's state as SQL sees it, read in one go for metrics, `status` and health. Ages in seconds, times as Date. */
export interface MirrorStats extends CatalogFigures {
  readonly snapshotId: string | null;
  readonly snapshotGeneratedAt: Date | null;
  readonly manifestAppliedAt: Date | null;
  readonly deltaCheckedAt: Date | null;
  readonly catalogState: 'ok' | 'stale' | 'none';
  readonly pace: {
    readonly ceilingPerMinute: number;
    readonly backingOffUntil: Date | null;
    readonly usedInWindow: number;
    /** Requests of the account's other users in it, and the most that the mirror may send beside them. */
    readonly othersInWindow: number;
    readonly mostInWindow: number;
    /** The account's limit. */
    readonly limitInWindow: number;
    /** What may be said of the present refusals, as a line for people, and in parts; null while requests are let through. */
    readonly refusal: string | null;
    readonly refused: {
      readonly outcome: string;
      readonly times: number;
      readonly since: Date;
      readonly ownRequests: number;
      readonly ownMost: number;
      readonly suspected: string;
    } | null;
  };
  readonly liveBudgetPerCall: number;
  readonly live: {
    /** Live computations in the last minute. */
    readonly computedPerMinute: number;
    /** The partner's ceiling on them as far as it is learned; null while none was met. */
    readonly ceilingPerMinute: number | null;
    /** Longest planned wait of a live SKU in seconds, where looks are too few for LIVE_INTERVAL; else null. */
    readonly longestWaitSeconds: number | null;
  };
  /** While everything is taken for live-priced: since when and by which evidence. */
  readonly incident: { readonly since: Date; readonly because: IncidentCause } | null;
  readonly deltaAudit: DeltaAudit;
  readonly tasks: readonly TaskState[];
}
