import { formatAge } from '../lib/duration.ts';
import { count, secondsBetween, sum } from './format.ts';
import type { TaskState } from '../store/tasks.ts';
import type { Status } from './status.ts';

/** healthy: prices are as fresh as they are meant to be. degraded: they are not, or will not be. broken: sync has stopped and needs an operator. */
export type Health = 'healthy' | 'degraded' | 'broken';

export interface Reason {
  readonly level: Exclude<Health, 'healthy'>;
  readonly text: string;
}

export interface HealthReport {
  readonly verdict: Health;
  /** What speaks against the mirror's health, the worst first. */
  readonly reasons: readonly string[];
}

/** From this part of pending SKUs on, the mirror is being filled. */
const FILLING = 0.05;
/** How long the delta may be overdue: where a daemon runs, where none does, and until nothing can be said to move. */
const OVERDUE_SECONDS = 600;
const UNATTENDED_SECONDS = 60;
const DEAD_SECONDS = 3600;
/** How long a refresh may be due whose time nothing but work stands before. */
const LATE_SECONDS = 3600;

const times = (n: number): string => (n === 1 ? 'once' : `${n} times in a row`);

const degraded = (text: string): Reason => ({ level: 'degraded', text });
const broken = (text: string): Reason => ({ level: 'broken', text });

/** The health that a status shows. `more` is what a running daemon knows of itself beside. */
export function judge(status: Status, now: Date, more: readonly Reason[] = []): HealthReport {
  const reasons = [
    ...more,
    ...progressReasons(status, now),
    ...refusalReasons(status),
    ...catalogReasons(status),
    ...backlogReasons(status),
  ];
  return healthOf(reasons);
}

export function healthOf(reasons: readonly Reason[]): HealthReport {
  const worst = reasons.filter(({ level }) => level === 'broken');
  const rest = reasons.filter(({ level }) => level === 'degraded');
  return {
    verdict: worst.length > 0 ? 'broken' : rest.length > 0 ? 'degraded' : 'healthy',
    reasons: [...worst, ...rest].map(({ text }) => text),
  };
}

/** The mirror's health in words. */
export function healthLine({ verdict, reasons }: HealthReport, status: Status | null, now: Date): string {
  if (verdict !== 'healthy' || status === null) return `${verdict}: ${reasons.join('; ')}`;
  const { stats } = status;
  const due = sum(stats.due.map((row) => row.count));
  const checked =
    stats.deltaCheckedAt === null
      ? ''
      : `, delta checked ${formatAge(secondsBetween(stats.deltaCheckedAt, now))} ago`;
  return `healthy: ${count(sum(stats.skus.map((skus) => skus.count)))} SKUs, ${count(due)} due${checked}`;
}

/** Whether anything moves: health is the age of the last progress, whatever else looks well. */
function progressReasons({ stats, tasks, daemons }: Status, now: Date): Reason[] {
  const alone = daemons === 0 ? 'no daemon is running' : null;
  if (stats.manifestAppliedAt === null) {
    const manifest = tasks.find(({ task }) => task === 'manifest');
    if (alone !== null) return [broken(`no baseline yet, and ${alone}`)];
    if (manifest?.running === true)
      return [degraded('no baseline yet: the manifest is being fetched and applied')];
    if (manifest !== undefined && manifest.failures > 0)
      return [
        broken(
          `no baseline yet: the manifest failed ${times(manifest.failures)} (${manifest.outcome ?? 'unknown'})`,
        ),
      ];
    return [degraded('no baseline yet')];
  }
  const delta = tasks.find(({ task }) => task === 'delta');
  const overdue = delta === undefined || delta.running ? 0 : secondsBetween(delta.nextAt, now);
  if (overdue <= (alone === null ? OVERDUE_SECONDS : UNATTENDED_SECONDS)) return [];
  const text = `${alone === null ? '' : `${alone}, `}the delta is overdue by ${formatAge(overdue)}`;
  return [overdue > DEAD_SECONDS ? broken(text) : degraded(text)];
}

function refusalReasons({ stats: { pace } }: Status): Reason[] {
  if (pace.refusal === null) return [];
  const lasting = pace.refused?.suspected === 'credential' || pace.refused?.suspected === 'account';
  return [lasting ? broken(pace.refusal) : degraded(pace.refusal)];
}

/**
 * Deltas and manifests that failed last: nobody hears of changes meanwhile, whatever else looks well. Nothing while requests are
 * refused: that is said for all of them.
 */
export function failingTasks(tasks: readonly TaskState[], refusal: string | null): string[] {
  if (refusal !== null) return [];
  return tasks
    .filter(({ task, failures }) => (task === 'delta' || task === 'manifest') && failures > 0)
    .map(({ task, failures, outcome }) => `the ${task} failed ${times(failures)} (${outcome ?? 'unknown'})`);
}

function catalogReasons({ stats, sync, tasks, failedCalls }: Status): Reason[] {
  return [
    ...(stats.catalogState === 'stale' ? ['the catalog is stale; SKUs are refreshed by age'] : []),
    ...(stats.incident === null ? [] : ['incident: the whole catalog is live-priced, so prices get older']),
    ...(sync.manifestRefused === null ? [] : [`the newest manifest was refused: ${sync.manifestRefused}`]),
    ...(stats.manifestAppliedAt === null ? [] : failingTasks(tasks, stats.pace.refusal)),
    ...(failedCalls > 0 ? [`bulk calls are failing (${failedCalls} in a row)`] : []),
  ].map(degraded);
}

function backlogReasons({ stats }: Status): Reason[] {
  const all = sum(stats.skus.map((skus) => skus.count));
  const pending = sum(stats.skus.filter(({ state }) => state === 'pending').map((skus) => skus.count));
  if (pending > all * FILLING)
    return [degraded(`initial load: ${count(all - pending)} of ${count(all)} SKUs fetched`)];
  // What was deferred or in error waits for reasons of its own and keeps its position by age.
  const late = stats.due.filter(
    ({ reason, oldestAgeSeconds }) =>
      reason !== 'deferred' && reason !== 'error' && oldestAgeSeconds > LATE_SECONDS,
  );
  const oldest = Math.max(0, ...late.map(({ oldestAgeSeconds }) => oldestAgeSeconds));
  return late.length === 0 ? [] : [degraded(`refreshes are up to ${formatAge(oldest)} late`)];
}
