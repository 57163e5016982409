import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import type { CatalogDifference } from '../store/catalog/sync-state.ts';
import { remedyOfKind } from '../store/connection/remedies.ts';
import type { TaskName, TaskState } from '../store/ledger/tasks.ts';
import type { Facts } from './facts.ts';
import { secondsBetween } from './format.ts';
import { broken, degraded, filling, held, type Reason } from './reason.ts';

/*
 * Judges whether sync makes progress, and whether its clock can be believed. Pure, and part of `judgeHealth`
 * (health.ts).
 */

/** How long the next run may be overdue, and how long before sync counts as stopped. */
const OVERDUE_SECONDS = 60;
const STOPPED_SECONDS = 3600;
/**
 * The longest back-off between retries. This clock did not schedule a run that is further off than twice this and
 * twice the delta's interval.
 */
const LONGEST_RETRY_SECONDS = 3600;
/** A run that lasts longer than three intervals of its task, and than this, makes no progress. */
const LONG_RUN_SECONDS = 300;
/**
 * Sync is stalled if SKUs are due and no call was answered for this long, or for two windows of the pace if that
 * is longer.
 */
const STALLED_SECONDS = 60;
/** Within this time a new manifest replaces a broken chain, if the partner has one. */
const CHAIN_BROKEN_SECONDS = 60;
const times = (n: number): string => (n === 1 ? 'once' : `${n} times in a row`);
const NO_DAEMON = 'no daemon is running';
const START = 'start one with `catalog-mirror run`';
export const DOCTOR = 'it is retried by itself; if it lasts, run `catalog-mirror doctor`';

/**
 * Returns reasons if sync makes no progress. The evidence is the next run of what brings changes, however well the
 * rest is doing.
 */
export function progressReasons(facts: Facts): Reason[] {
  const { sync, tasks } = facts;
  const { deltaLateAfterSeconds } = facts.targets;
  if (sync.manifestAppliedAt === null) return [noBaseline(facts), ...scheduleReasons(facts, 'manifest')];
  const age = deltaAgeSeconds(facts);
  const late = degraded(
    'delta-late',
    `the delta was last checked ${age < 0 ? 'at a time to come' : `${formatAge(age)} ago`} ` +
      `(${formatAge(deltaLateAfterSeconds)} is allowed): changes are found by manifest, and prices refreshed by ` +
      'age',
    `see the task delta (${tasks.find(({ task }) => task === 'delta')?.outcome ?? 'not run yet'}) in \`catalog-mirror status\``,
  );
  return [
    ...scheduleReasons(facts, 'delta'),
    ...(isByAge(facts, age) ? [late] : []),
    ...held([behind(facts) || standsStill(facts), differs(facts), chainBroken(facts), stalled(facts)]),
  ];
}

/** A time further in the future comes from a clock that was set. */
const AHEAD_SECONDS = 60;

/** Returns whether the delta is late by its age, and not only by what the manifest route says about it. */
function isByAge({ sync, targets }: Facts, age: number): boolean {
  if (sync.deltaLate !== true) return false;
  if (sync.deltaBehindSince === null && sync.catalogDiffersAt === null) return true;
  return age > targets.deltaLateAfterSeconds || age < -AHEAD_SECONDS;
}

const BY_MANIFEST = 'until a manifest is applied, prices are refreshed by age';

/** Returns a reason if the delta says that nothing is new, but the manifest route names a newer snapshot. */
function behind({ sync: { deltaBehindSince }, now }: Facts): Reason | false {
  return (
    deltaBehindSince !== null &&
    degraded(
      'delta-behind',
      `the manifest route has named a newer snapshot for ${formatAge(secondsBetween(deltaBehindSince, now))}, and the ` +
        `delta does not lead to it; ${BY_MANIFEST}`,
      'look for a cache in front of the delta route, or ask the partner; see the task manifest in `catalog-mirror status`',
    )
  );
}

/**
 * Returns a reason if the delta was behind, a manifest took its place, and the delta has since led to none of the
 * newer snapshots. Until a snapshot is named that it does not lead to, nothing is missing, and there is no reason.
 */
function standsStill({ sync: { deltaStillSince }, now }: Facts): Reason | false {
  return (
    deltaStillSince !== null &&
    degraded(
      'delta-behind',
      'the delta has stood still since a manifest took its place, and for ' +
        `${formatAge(secondsBetween(deltaStillSince, now))} newer snapshots have come as manifests alone: changes are ` +
        'found minutes later',
      'look for a cache in front of the delta route, or ask the partner; it ends with the first delta that leads on',
    )
  );
}

/** Returns a reason if the manifest route says of the mirror's own snapshot what the mirror does not have. */
function differs({ sync: { catalogDiffersAt, catalogDifference }, now }: Facts): Reason | false {
  if (catalogDiffersAt === null) return false;
  const age = formatAge(secondsBetween(catalogDiffersAt, now));
  return degraded(
    'catalog-differs',
    `for ${age} the manifest route has said of the mirrored snapshot that ${differenceText(catalogDifference)}; ${BY_MANIFEST}`,
    'see the task manifest in `catalog-mirror status`; if it comes again, ask the partner what its delta leaves out',
  );
}

function differenceText(difference: CatalogDifference | null): string {
  if (difference === null || 'rebuilt' in difference) return 'it was built again';
  const said = ({ by, what }: { by: number; what: string }) =>
    by === 0 ? [] : [`${count(Math.abs(by))} ${what} ${by > 0 ? 'more' : 'fewer'}`];
  const { listed, live } = difference;
  return `it lists ${[...said({ by: listed, what: 'SKUs' }), ...said({ by: live, what: 'live SKUs' })].join(' and ')}`;
}

/** Returns a reason if deltas wait for a new manifest, which is normally fetched at once. */
function chainBroken({ sync: { chainBrokenAt }, now }: Facts): Reason | false {
  const seconds = chainBrokenAt === null ? 0 : secondsBetween(chainBrokenAt, now);
  return (
    seconds > CHAIN_BROKEN_SECONDS &&
    degraded(
      'chain-broken',
      `the chain of deltas has been broken for ${formatAge(seconds)}, and changes wait for a new manifest`,
      'it is fetched by itself, and the delta asked again; if it lasts, see the tasks manifest and delta in `catalog-mirror status`',
    )
  );
}

/** Returns a reason if SKUs are due, nothing else keeps them waiting, and yet no call is answered. */
function stalled({ daemonSeconds, idle, windowSeconds, pace, incident, tasks, now }: Facts): Reason | false {
  const { answeredSeconds, dueSeconds } = idle;
  const allowed = Math.max(STALLED_SECONDS, 2 * windowSeconds);
  const reprice = tasks.find(({ task }) => task === 'reprice');
  const isPaused = reprice !== undefined && reprice.nextAt > now;
  if (dueSeconds === null || pace.refusal !== null || incident || isPaused) return false;
  const seconds = Math.min(answeredSeconds ?? Infinity, dueSeconds, daemonSeconds);
  return (
    seconds > allowed &&
    degraded(
      'stalled',
      `SKUs have been due for ${formatAge(dueSeconds)}, and no call was answered for ${formatAge(seconds)}`,
      'see the log of the daemon; if it lasts, restart it',
    )
  );
}

/**
 * Returns the seconds since the last delta check, or else since the baseline was applied; 0 if there is neither.
 */
function deltaAgeSeconds({ sync, now }: Facts): number {
  const checkedAt = sync.deltaCheckedAt ?? sync.manifestAppliedAt;
  return checkedAt === null ? 0 : secondsBetween(checkedAt, now);
}

function noBaseline(facts: Facts): Reason {
  if (facts.daemons === 0) return broken('no-baseline', `no baseline yet, and ${NO_DAEMON}`, START);
  // The refusal says how bad that is, and what to do.
  if (facts.pace.refusal !== null)
    return filling(
      'no-baseline',
      'no baseline yet: requests are rejected',
      'the manifest is fetched by itself once they are not',
    );
  const manifest = facts.tasks.find(({ task }) => task === 'manifest');
  if (manifest?.running === true)
    return filling(
      'no-baseline',
      'no baseline yet: the manifest is being fetched and applied',
      'wait for it, and follow it with `catalog-mirror status --watch`',
    );
  if (manifest === undefined || manifest.failures === 0)
    return filling('no-baseline', 'no baseline yet', 'wait for the first manifest');
  return broken(
    'no-baseline',
    `no baseline yet: the manifest failed ${failuresOf(manifest)}`,
    remedyOfKind(manifest.outcome)?.hint ??
      'run `catalog-mirror doctor`, then `catalog-mirror refresh --manifest`',
  );
}

/** Why a postponed task waits, by its outcome; its failures had other causes. */
const PUT_OFF: ReadonlyMap<string | null, string> = new Map([
  ['silence', 'back-off: requests wait after one that was rejected'],
  ['probe', 'back-off: requests wait for the answer to a test request'],
]);

/**
 * Describes how often a task has failed, and why; causes that need an operator, and waits, are explained in words.
 */
export function failuresOf({ failures, outcome }: TaskState): string {
  const what = remedyOfKind(outcome)?.what;
  const why = PUT_OFF.get(outcome) ?? outcome ?? 'unknown';
  return `${times(failures)} (${why}${what === undefined ? '' : `: ${what}`})`;
}

/** Returns reasons if the next task has no row, is overdue, or is put off further than any schedule does. */
function scheduleReasons(facts: Facts, name: TaskName): Reason[] {
  const { tasks, daemons, now, targets } = facts;
  const next = tasks.find(({ task }) => task === name);
  if (next === undefined)
    return [
      broken(
        'task-missing',
        `the task ${name} is missing from catalog_internal.tasks and never runs`,
        '`catalog-mirror migrate`, or a start of the daemon, makes it anew',
      ),
    ];
  // A lease outlives its daemon.
  if (next.running && daemons > 0) return held([longRun(facts, next)]);
  const overdue = secondsBetween(next.nextAt, now);
  const furthest = 2 * Math.max(LONGEST_RETRY_SECONDS, targets.deltaIntervalSeconds);
  if (-overdue > furthest)
    return [
      broken(
        'stopped',
        `the ${name} is put off for ${formatAge(-overdue)}, as after a clock that was set back`,
        `run as the owner: update catalog_internal.tasks set next_at = now() where task = '${name}'`,
      ),
    ];
  if (overdue <= OVERDUE_SECONDS) return [];
  const level = overdue > STOPPED_SECONDS ? broken : degraded;
  const what = `the ${name} is overdue by ${formatAge(overdue)}`;
  return daemons > 0
    ? [level('stopped', what, 'restart the daemon')]
    : [level('stopped', `${NO_DAEMON}, ${what}`, START)];
}

function longRun({ now, targets }: Facts, { task, startedAt }: TaskState): Reason | false {
  // A manifest may take as long as its download may.
  if (task !== 'delta' || startedAt === null) return false;
  const seconds = secondsBetween(startedAt, now);
  return (
    seconds > Math.max(LONG_RUN_SECONDS, 3 * targets.deltaIntervalSeconds) &&
    degraded('stopped', `the ${task} has been running for ${formatAge(seconds)}`, 'restart the daemon')
  );
}

/** A clock further behind its high-water mark was set back; a smaller difference is an everyday correction. */
const SET_BACK_SECONDS = 2;

/** Returns reasons if Postgres's clock is wrong: no age and no wait is then what it seems. */
export function clockReasons({ clock }: Facts): Reason[] {
  const behind = (clock.highWater - clock.now) / 1000;
  const back = clock.setBackSeconds ?? (behind > SET_BACK_SECONDS ? behind : null);
  const { aheadSeconds } = clock;
  const side = (aheadSeconds ?? 0) > 0 ? 'ahead of' : 'behind';
  return held([
    back !== null &&
      degraded(
        'clock',
        `the clock of Postgres was set back by ${formatAge(back)}; what it has written while it was ahead is ` +
          'being put right, and no price is actionable',
        'wait: a daemon does it within seconds; if it lasts, the line `clock.not-put-right` of its log says why',
      ),
    aheadSeconds !== null &&
      degraded(
        'clock',
        `the clock of Postgres is ${formatAge(Math.abs(aheadSeconds))} ${side} the others, so no price is actionable`,
        'set it right, and see to the time service of its host',
      ),
  ]);
}
