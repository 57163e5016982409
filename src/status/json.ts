import { backlogMinutes, estimateBacklog } from './format.ts';
import type { Health } from './health.ts';
import type { PageView } from './page.ts';
import type { Status } from './status.ts';

/**
 * Returns the status for programs; its members are documented in docs/status.md and only ever added to. Its type
 * is what the package declares to those programs (client/types.ts).
 */
export function asJson(status: Status, health: Health, now: Date) {
  const { sync, tasks, targets, daemons, failedCalls } = status;
  // `catalog-mirror follow --list` shows who follows, with what receivers said.
  const { ofManifest: _, unanswered: _unanswered, followers: _followers, ...stats } = status.stats;
  return {
    ...health,
    at: now,
    ...stats,
    catalogFault: sync.catalogFault,
    chainBrokenAt: sync.chainBrokenAt,
    manifestRefused: sync.manifestRefused,
    targets,
    backlogMinutes: backlogMinutes(status),
    backlog: estimateBacklog(status, now),
    failedCalls,
    daemons,
    tasks,
  };
}

/** Returns what the page shows, for programs. Without Postgres, only what a daemon knows by itself. */
export function asPageJson({
  status,
  health,
  now,
  changes,
  problems,
  identity: mirror,
}: Pick<PageView, 'status' | 'health' | 'now' | 'changes' | 'problems' | 'identity'>) {
  return status === null
    ? { ...health, at: now, problems, mirror }
    : { ...asJson(status, health, now), changes, problems, mirror };
}
