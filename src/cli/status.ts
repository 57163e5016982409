import { type MirrorConfig, loadConfig, processSources } from '../config.ts';
import { paceReader } from '../health.ts';
import { paceLimits } from '../limits.ts';
import { formatAge } from '../lib/duration.ts';
import type { Sql } from '../store/db.ts';
import { readStats } from '../store/stats.ts';
import type { DeltaAudit, MirrorStats } from '../store/stats-types.ts';
import { readSyncState, type SyncState } from '../store/sync-state.ts';
import type { TaskState } from '../store/tasks.ts';
import { type Command, EXIT } from './command.ts';
import { withMirror } from './mirror.ts';

interface Status {
  readonly stats: MirrorStats;
  readonly sync: SyncState;
  readonly tasks: readonly TaskState[];
  readonly requestsPerMinute: number;
  readonly skusPerCall: number;
}

export const status: Command = {
  summary: 'how the mirror stands, one screen',
  usage: 'status [--json]',
  options: { json: { type: 'boolean' } },
  optionHelp: { json: 'for programs' },
  positionals: false,
  async run({ values, print }) {
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    const now = await withMirror(config, (sql) => readStatus(sql, config));
    print(values['json'] === true ? JSON.stringify(asJson(now)) : screen(now, new Date()));
    return EXIT.ok;
  },
};

/** What both forms are made of. */
export async function readStatus(sql: Sql, config: MirrorConfig): Promise<Status> {
  const limits = paceLimits(config);
  const [stats, sync] = await Promise.all([
    readStats(sql, {
      windowMs: limits.windowMs,
      liveBudget: config.bulk.liveBudget,
      paceOf: paceReader(limits),
    }),
    readSyncState(sql),
  ]);
  return {
    stats,
    sync,
    tasks: stats.tasks,
    requestsPerMinute: stats.pace.ceilingPerMinute,
    skusPerCall: config.bulk.maxSkus,
  };
}

/** When the backlog is worked off at the present ceiling, in minutes: the cheap SKUs fill calls, live ones their budget. */
export function backlogMinutes(stats: MirrorStats, skusPerCall: number): number {
  const live = stats.due
    .filter((d) => d.reason === 'live' || d.reason === 'deferred')
    .reduce((n, d) => n + d.count, 0);
  const all = stats.due.reduce((n, d) => n + d.count, 0);
  const calls = Math.max(
    Math.ceil(all / skusPerCall),
    Math.ceil(live / Math.max(1, stats.liveBudgetPerCall)),
  );
  return calls / Math.max(1, stats.pace.ceilingPerMinute);
}

/** The form for programs. */
export function asJson({ stats, sync, tasks, skusPerCall }: Status): Record<string, unknown> {
  const { snapshotId, ...rest } = stats;
  return {
    snapshotId,
    ...rest,
    chainBrokenAt: sync.chainBrokenAt,
    manifestRefused: sync.manifestRefused,
    backlogMinutes: backlogMinutes(stats, skusPerCall),
    tasks,
  };
}

const INCIDENT_CAUSES = {
  'live-count': 'the catalog counts it so',
  deferrals: 'snapshot-priced SKUs are deferred',
} as const;

/** The screen for a person: the most important first. */
export function screen({ stats, sync, tasks, skusPerCall }: Status, now: Date): string {
  const ago = (at: Date | null) =>
    at === null ? 'never' : `${at.toISOString()} (${formatAge((now.getTime() - at.getTime()) / 1000)} ago)`;
  const count = (n: number) => n.toLocaleString('en-US');
  const due = stats.due.reduce((n, d) => n + d.count, 0);
  const byState = stats.skus.map((s) => `${count(s.count)} ${s.state}/${s.priceSource}`).join(', ');
  const oldest = Math.max(0, ...stats.priceAge.map((p) => p.oldestSeconds));
  const minutes = backlogMinutes(stats, skusPerCall);
  return [
    `catalog     ${stats.catalogState}${sync.catalogFault === null ? '' : ` (the catalog routes answer ${sync.catalogFault})`}`,
    `snapshot    ${stats.snapshotId ?? 'none'}, generated ${ago(stats.snapshotGeneratedAt)}`,
    `baseline    ${ago(stats.manifestAppliedAt)}${sync.manifestRefused === null ? '' : `; the newest manifest is refused: ${sync.manifestRefused}`}`,
    `delta       ${ago(stats.deltaCheckedAt)}${sync.chainBrokenAt === null ? '' : '; chain broken, waiting for a fresh manifest'}`,
    `SKUs        ${byState === '' ? 'none yet' : byState}`,
    `backlog     ${count(due)} owed now${due === 0 ? '' : `, worked off in about ${formatAge(minutes * 60)}`}`,
    ...stats.due.map(
      (d) =>
        `            ${d.reason.padEnd(10)}${count(d.count).padStart(9)}  oldest ${formatAge(d.oldestAgeSeconds)}`,
    ),
    `deferred    ${count(stats.deferredSkus)}`,
    `live        ${stats.live.computedPerMinute} computed in the last minute, budget ${stats.liveBudgetPerCall} a call${liveNote(stats)}`,
    `oldest      price ${formatAge(oldest)}, metadata ${formatAge(stats.oldestMetadataAgeSeconds)}`,
    ...(stats.incident === null
      ? []
      : [
          `incident    since ${ago(stats.incident.since)}: everything is taken for live-priced (${INCIDENT_CAUSES[stats.incident.because]})`,
        ]),
    `audit       ${auditLine(stats.deltaAudit)}`,
    `pace        ${stats.pace.usedInWindow} requests in the last window, ceiling ${stats.pace.ceilingPerMinute.toFixed(0)} a minute${paceNote(stats, now)}`,
    ...tasks.filter((t) => t.task !== 'reprice').map((t) => taskLine(t, now)),
  ].join('\n');
}

/** How well the delta and the mirror's own looks agree. */
export function auditLine(audit: DeltaAudit): string {
  const count = (n: number) => n.toLocaleString('en-US');
  const lead = audit.seenFirstSeconds / Math.max(1, audit.movesSeenFirst);
  return [
    `reports ${count(audit.reportsConfirmed)} confirmed, ${count(audit.reportsUnchanged)} without a move`,
    `moves ${count(audit.movesSeenFirst)} seen first${audit.movesSeenFirst > 0 ? ` (by ${formatAge(lead)})` : ''}, ${count(audit.movesNeverReported)} never reported, ${count(audit.movesWaiting)} waiting`,
  ].join('; ');
}

function liveNote({ live }: MirrorStats): string {
  const ceiling =
    live.ceilingPerMinute === null ? '' : `, ceiling ${live.ceilingPerMinute.toFixed(0)} a minute`;
  const wait =
    live.longestWaitSeconds === null
      ? ''
      : `; too few looks for LIVE_INTERVAL, by worth, none later than ${formatAge(live.longestWaitSeconds)}`;
  return ceiling + wait;
}

function paceNote({ pace }: MirrorStats, now: Date): string {
  const silent = pace.backingOffUntil === null ? 0 : pace.backingOffUntil.getTime() - now.getTime();
  return `${silent > 0 ? `; silent for ${formatAge(silent / 1000)} more` : ''}${pace.refusal === null ? '' : `; ${pace.refusal}`}`;
}

function taskLine(task: TaskState, now: Date): string {
  const name = `task ${task.task}`.padEnd(20);
  const next = `next in ${formatAge(Math.max(0, task.nextAt.getTime() - now.getTime()) / 1000)}`;
  if (task.running) {
    const shown = Object.entries(task.progress ?? {}).map(([key, value]) => `${key} ${value ?? '?'}`);
    return `${name}running ${shown.join(', ')}`.trimEnd();
  }
  const failures = task.failures > 0 ? `, ${task.failures} failures in a row` : '';
  return `${name}${task.outcome ?? 'not run yet'}${failures}, ${next}`;
}
