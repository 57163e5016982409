/** A distribution over SKUs as it is now. `le` are upper bounds in seconds, `count` is cumulative (Prometheus histogram form). */
export interface AgeDistribution {
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly count: number;
  readonly sumSeconds: number;
}

/** The mirror's state as SQL sees it, read in one go for metrics, `status` and health. Ages in seconds, times as Date. */
export interface MirrorStats {
  readonly snapshotId: string | null;
  readonly snapshotGeneratedAt: Date | null;
  readonly manifestAppliedAt: Date | null;
  readonly deltaCheckedAt: Date | null;
  readonly catalogState: 'ok' | 'stale' | 'none';
  readonly skus: readonly { state: string; priceSource: 'snapshot' | 'live' | 'unknown'; count: number }[];
  readonly priceAge: readonly { priceSource: string; ages: AgeDistribution; oldestSeconds: number }[];
  readonly freshSkus: readonly { priceSource: string; count: number }[];
  readonly metadataAge: AgeDistribution;
  readonly oldestMetadataAgeSeconds: number;
  readonly due: readonly { reason: string; count: number; oldestAgeSeconds: number }[];
  readonly deferredSkus: number;
  readonly oldestDeferredAgeSeconds: number;
  readonly pace: {
    readonly ceilingPerMinute: number;
    readonly backingOffUntil: Date | null;
    readonly usedInWindow: number;
    readonly refusal: string | null;
  };
  readonly liveBudgetPerCall: number;
}
