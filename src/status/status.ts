import { type CallPause, callPause, readTasks, type TaskState } from '../store/tasks.ts';
import type { Sql } from '../store/db.ts';
import { countDaemons } from '../store/instance.ts';
import type { MirrorStats } from './stats.ts';
import { type AgeTargets, readAgeTargets, readSyncState, type SyncState } from '../store/sync-state.ts';

/** How the mirror stands: what the screen, its JSON and the page are made of, all of it read from Postgres. */
export interface Status {
  readonly stats: MirrorStats;
  readonly sync: SyncState;
  readonly tasks: readonly TaskState[];
  readonly targets: AgeTargets;
  /** Bulk calls that failed in a row. */
  readonly failedCalls: CallPause['failures'];
  /** Daemons on this database. */
  readonly daemons: number;
  readonly bulkMaxSkus: number;
  /** The mirror's whole share of the account's limit, in requests a minute and in a window. */
  readonly fullPerMinute: number;
  readonly mostInWindow: number;
}

export interface StatusParts {
  readonly stats: () => Promise<MirrorStats>;
  readonly limits: { readonly maxPerWindow: number; readonly windowMs: number };
  readonly bulkMaxSkus: number;
}

export async function readStatus(sql: Sql, { stats, limits, bulkMaxSkus }: StatusParts): Promise<Status> {
  const [read, sync, tasks, targets, pause, daemons] = await Promise.all([
    stats(),
    readSyncState(sql),
    readTasks(sql),
    readAgeTargets(sql),
    callPause(sql),
    countDaemons(sql),
  ]);
  return {
    stats: read,
    sync,
    tasks,
    targets,
    failedCalls: pause.failures,
    daemons,
    bulkMaxSkus,
    fullPerMinute: (limits.maxPerWindow * 60_000) / limits.windowMs,
    mostInWindow: limits.maxPerWindow,
  };
}
