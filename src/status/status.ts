import { readDeltaAudit } from '../store/catalog/audit.ts';
import type { Sql } from '../store/connection/db.ts';
import { readFollowers } from '../store/history/follower-list.ts';
import { readHintStats } from '../store/sellers/hint-sources.ts';
import { readPromises } from '../store/sellers/promises.ts';
import { readRefreshStats } from '../store/sellers/refresh.ts';
import type { CatalogCounts } from '../store/status/counts.ts';
import { readCalibration } from '../store/trust/calibration.ts';
import type { Facts, ReadFacts } from './facts.ts';
import { type MirrorStats, statsOf } from './stats.ts';

/** The mirror's status, read from Postgres: what the screen, its JSON and the page show. */
export interface Status extends Pick<Facts, 'sync' | 'tasks' | 'targets' | 'failedCalls' | 'daemons'> {
  readonly stats: MirrorStats;
  readonly bulkMaxSkus: number;
  /** The mirror's whole share of the account's limit, in requests a minute and in a window. */
  readonly fullPerMinute: number;
  readonly mostInWindow: number;
}

/** The settings that a status shows. */
export interface StatusSettings {
  readonly limits: { readonly maxPerWindow: number; readonly windowMs: number };
  readonly bulkMaxSkus: number;
  /** Live SKUs a call until one is learned. */
  readonly liveBudget: number;
}

/** Builds the status from facts and counts that were read just now; only what refreshes have found is read here. */
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
