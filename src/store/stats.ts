import { readDeltaAudit } from './audit.ts';
import type { Sql } from './db.ts';
import { readLivePlan } from './live.ts';
import { readPace } from './pace.ts';
import type { CatalogFigures, MirrorStats } from './stats-types.ts';
import { readSyncState } from './sync-state.ts';
import { readTasks } from './tasks.ts';

/** Everything that metrics and `status` show of the mirror, read from Postgres in one moment. */
export async function readStats(
  sql: Sql,
  options: {
    readonly windowMs: number;
    readonly liveBudget: number;
    readonly paceOf: PaceReader;
    readonly figures: () => Promise<CatalogFigures>;
  },
): Promise<MirrorStats> {
  const [state, figures, pace, deltaAudit, plan, tasks] = await Promise.all([
    readSyncState(sql),
    options.figures(),
    readPace(sql, options.windowMs),
    readDeltaAudit(sql),
    readLivePlan(sql),
    readTasks(sql),
  ]);
  return {
    ...figures,
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
      longestWaitSeconds: plan.mostMinutes === null ? null : plan.mostMinutes * 60,
    },
    incident:
      plan.incident === null
        ? null
        : { since: new Date(plan.incident.since), because: plan.incident.because },
  };
}

/** Turns the stored pace into what is shown of it; the arithmetic is the pacer's. */
export type PaceReader = (view: Awaited<ReturnType<typeof readPace>>) => MirrorStats['pace'];
