import type { PaceReader, PaceStatus } from '../pace/view.ts';
import { type DeltaAudit, readDeltaAudit } from '../store/audit.ts';
import type { CatalogCounts } from '../store/catalog-counts.ts';
import type { IncidentCause } from '../store/incident.ts';
import { readTasks, type TaskState } from '../store/tasks.ts';
import type { Sql } from '../store/db.ts';
import { readLivePlan } from '../store/live.ts';
import { readPace } from '../pace/ledger.ts';
import { readSyncState } from '../store/sync-state.ts';

/** The mirror's state as SQL sees it, read in one go for metrics, `status` and health. Ages in seconds, times as Date. */
export interface MirrorStats extends CatalogCounts {
  readonly snapshotId: string | null;
  readonly snapshotGeneratedAt: Date | null;
  readonly manifestAppliedAt: Date | null;
  readonly deltaCheckedAt: Date | null;
  readonly catalogState: 'ok' | 'stale' | 'none';
  readonly pace: PaceStatus;
  readonly liveBudgetPerCall: number;
  readonly live: {
    /** Live computations in the last minute. */
    readonly computedPerMinute: number;
    /** The partner's ceiling on them as far as it is learned; null while none was met. */
    readonly ceilingPerMinute: number | null;
    /** Longest planned wait of a live SKU in seconds, where refreshes are too few for LIVE_INTERVAL; else null. */
    readonly longestWaitSeconds: number | null;
  };
  /** While everything is taken for live-priced: since when and by which evidence. */
  readonly incident: { readonly since: Date; readonly because: IncidentCause } | null;
  readonly deltaAudit: DeltaAudit;
  readonly tasks: readonly TaskState[];
}

/** Everything that metrics and `status` show of the mirror, read from Postgres in one moment. */
export async function readStats(
  sql: Sql,
  options: {
    readonly windowMs: number;
    readonly liveBudget: number;
    readonly paceOf: PaceReader;
    readonly counts: () => Promise<CatalogCounts>;
  },
): Promise<MirrorStats> {
  const [state, counts, pace, deltaAudit, plan, tasks] = await Promise.all([
    readSyncState(sql),
    options.counts(),
    readPace(sql, options.windowMs),
    readDeltaAudit(sql),
    readLivePlan(sql),
    readTasks(sql),
  ]);
  return {
    ...counts,
    snapshotId: state.snapshotId,
    snapshotGeneratedAt: state.snapshotGeneratedAt,
    manifestAppliedAt: state.manifestAppliedAt,
    deltaCheckedAt: state.deltaCheckedAt,
    catalogState: state.catalogState,
    pace: options.paceOf(pace),
    liveBudgetPerCall: Math.floor(state.liveBudget ?? options.liveBudget),
    deltaAudit,
    tasks,
    live: {
      computedPerMinute: plan.computed,
      ceilingPerMinute: plan.ceilingPerMinute,
      longestWaitSeconds: plan.maxIntervalMinutes === null ? null : plan.maxIntervalMinutes * 60,
    },
    incident:
      plan.incident === null
        ? null
        : { since: new Date(plan.incident.since), because: plan.incident.because },
  };
}
