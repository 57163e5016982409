import { backlogMinutes, estimateBacklog } from './format.ts';
import type { Status } from './status.ts';
import type { Health } from './health.ts';

/** The form for programs; its members are documented in docs/status.md and only ever added to. */
export function asJson(status: Status, health: Health, now: Date): Record<string, unknown> {
  const { sync, tasks, targets, daemons, failedCalls } = status;
  const { ofManifest: _, ...stats } = status.stats;
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
