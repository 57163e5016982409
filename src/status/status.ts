import type { PaceStatus } from '../pace/view.ts';
import { readDeltaAudit, type DeltaAudit } from '../store/catalog/audit.ts';
import type { Sql } from '../store/connection/db.ts';
import { readFollowers, type FollowerNow } from '../store/history/follower-list.ts';
import type { TaskState } from '../store/ledger/tasks.ts';
import type { IncidentCause } from '../store/live/limits.ts';
import type { LivePlan } from '../store/live/live.ts';
import { readHintStats, type HintStats } from '../store/sellers/hint-sources.ts';
import { readPromises, type PromiseStats } from '../store/sellers/promises.ts';
import { readRefreshStats, type RefreshStats } from '../store/sellers/refresh.ts';
import type { Targets } from '../store/setup/sql-settings.ts';
import type { CatalogCounts } from '../store/status/counts.ts';
import { readCalibration, type CohortCalibration } from '../store/trust/calibration.ts';
import type { Facts, ReadFacts } from './facts.ts';

/** The mirror's status, read from Postgres: what the screen, its JSON and the page show. */
export interface Status extends Pick<Facts, 'sync' | 'tasks' | 'targets' | 'failedCalls' | 'daemons'> {
  readonly stats: MirrorStats;
  readonly bulkMaxSkus: number;
  /** The mirror's whole share of the account's limit, in requests per minute and per window. */
  readonly fullPerMinute: number;
  readonly mostInWindow: number;
}

/** The settings that a status shows. */
export interface StatusSettings {
  readonly limits: { readonly maxPerWindow: number; readonly windowMs: number };
  readonly bulkMaxSkus: number;
  /** Live SKUs per call until that is learned. */
  readonly liveBudget: number;
}

/** Builds the status from facts and counts that were just read; reads only what these lack. */
export async function readStatus(
  sql: Sql,
  { facts, plan }: ReadFacts,
  counts: CatalogCounts,
  { limits, bulkMaxSkus, liveBudget }: StatusSettings,
): Promise<Status> {
  const { sync, tasks, targets, failedCalls, daemons } = facts;
  const [deltaAudit, calibration, hints, refreshes, promises, followers] = await Promise.all([
    readDeltaAudit(sql),
    readCalibration(sql),
    readHintStats(sql),
    readRefreshStats(sql),
    readPromises(sql),
    readFollowers(sql),
  ]);
  return {
    stats: statsOf(
      facts,
      counts,
      plan,
      { deltaAudit, calibration, hints, refreshes, promises, followers },
      liveBudget,
    ),
    sync,
    tasks,
    failedCalls,
    daemons,
    targets,
    bulkMaxSkus,
    fullPerMinute: (limits.maxPerWindow * 60_000) / limits.windowMs,
    mostInWindow: limits.maxPerWindow,
  };
}

/** What metrics and `status` show of the mirror. Ages in seconds, times as Date. */
export interface MirrorStats extends CatalogCounts {
  readonly snapshotId: string | null;
  readonly snapshotGeneratedAt: Date | null;
  readonly manifestAppliedAt: Date | null;
  readonly deltaCheckedAt: Date | null;
  readonly catalogState: 'ok' | 'stale' | 'none';
  readonly pace: PaceStatus;
  readonly liveBudgetPerCall: number;
  readonly live: {
    readonly computedPerMinute: number;
    /** The partner's ceiling on live computations per minute, as learned; null while none was met. */
    readonly ceilingPerMinute: number | null;
    /** Longest planned wait of a live SKU in seconds, if refreshes are too few for LIVE_INTERVAL; else null. */
    readonly longestWaitSeconds: number | null;
  };
  /** While all SKUs count as live-priced: since when, and by which evidence. */
  readonly incident: { readonly since: Date; readonly because: IncidentCause } | null;
  /** Set while the partner's live source fails and other SKUs are answered as usual. */
  readonly liveOutage?: { readonly since: Date } | null;
  readonly deltaAudit: DeltaAudit;
  /** Columns of metadata that change with each refresh of many SKUs. */
  readonly unsteadyColumns: readonly string[];
  /** How well p_right has held, by cohort. */
  readonly calibration: readonly CohortCalibration[];
  /** What sellers have hinted, and how often they were right. */
  readonly hints: HintStats;
  /** What sellers have asked for (catalog.refresh). */
  readonly refreshes: RefreshStats;
  /** Promises of a price's age, and whether they were kept. */
  readonly promises: PromiseStats;
  /** Followers with a name (`catalog-mirror follow`). */
  readonly followers: readonly FollowerNow[];
  readonly tasks: readonly TaskState[];
  /** Ages within which prices count as fresh. */
  readonly targets: Pick<Targets, 'liveSeconds' | 'snapshotSeconds'>;
}

/**
 * Combines facts, counts, plan and what was `found` into statistics. `liveBudget`: live SKUs per call until that
 * is learned. Pure.
 */
function statsOf(
  { sync, tasks, pace, doubts, unsteadyColumns, targets }: Facts,
  counts: CatalogCounts,
  plan: LivePlan,
  found: Pick<MirrorStats, 'deltaAudit' | 'calibration' | 'hints' | 'refreshes' | 'promises' | 'followers'>,
  liveBudget: number,
): MirrorStats {
  return {
    ...counts,
    snapshotId: sync.snapshotId,
    snapshotGeneratedAt: sync.snapshotGeneratedAt,
    manifestAppliedAt: sync.manifestAppliedAt,
    deltaCheckedAt: sync.deltaCheckedAt,
    catalogState: sync.catalogState,
    pace,
    liveBudgetPerCall: Math.floor(sync.liveBudget ?? liveBudget),
    ...found,
    doubted: { implausible: doubts.implausible, 'mass-move': doubts.massMoved },
    unsteadyColumns,
    tasks,
    targets,
    live: {
      computedPerMinute: plan.computed,
      ceilingPerMinute: plan.ceiling.perMinute,
      longestWaitSeconds: plan.maxIntervalMinutes === null ? null : plan.maxIntervalMinutes * 60,
    },
    incident:
      plan.incident === null
        ? null
        : { since: new Date(plan.incident.since), because: plan.incident.because },
    liveOutage: outageOf(plan),
  };
}

function outageOf({ outageSince = null }: LivePlan): MirrorStats['liveOutage'] {
  return outageSince === null ? null : { since: new Date(outageSince) };
}
