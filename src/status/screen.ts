import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import type { TaskState } from '../store/ledger/tasks.ts';
import { scopeText } from './catalog.ts';
import {
  ageBands,
  actionableLine,
  auditLine,
  calibrationLine,
  countedLine,
  estimateBacklog,
  estimateLine,
  failingLine,
  hintsLine,
  promisesLine,
  incidentLine,
  interval,
  liveLine,
  paceLine,
  percentOf,
  secondsBetween,
  sum,
  targetSeconds,
  unsteadyLine,
} from './format.ts';
import type { Health } from './health.ts';
import type { MirrorStats, Status } from './status.ts';
import { bar, harmless, type Paint, painter, STATE_TINTS, type Terminal, type Tint, wrap } from './style.ts';

const LABEL = 12;
const WIDEST_BAR = 40;
const NARROWEST_BAR = 4;
/** Width of a row of bars without the bar: indent, name, number, note. */
const BESIDE_BAR = LABEL + 11 + 12 + 14;

/** One part of the screen: a label, a line, and rows of bars below them. */
interface Part {
  readonly label: string;
  readonly text: string;
  readonly tint?: Tint | undefined;
  readonly rows?: readonly Row[];
}

interface Row {
  readonly name: string;
  readonly part: number;
  readonly whole: number;
  readonly number: string;
  readonly note?: string;
  readonly tint: Tint;
}

/** Counts older than this, in seconds, no longer show the present. */
const OLD_SECONDS = 3;

/**
 * Renders the screen for a person: first the state with its reasons, then the figures. `which`: the mirror in
 * words, or null if that is obvious. Pure.
 */
export function screen(
  status: Status,
  health: Health,
  now: Date,
  terminal: Terminal,
  which: string | null = null,
): string {
  const paint = painter(terminal);
  const ago = (at: Date | null) =>
    at === null ? 'never' : `${at.toISOString()} (${formatAge(secondsBetween(at, now))} ago)`;
  const parts = [
    ...catalogParts(status, ago),
    ...freshnessParts(status),
    ...backlogParts(status, now),
    ...paceParts(status, now),
    ...status.tasks.filter(({ task }) => task !== 'reprice').map((task) => taskPart(task, now)),
  ];
  const notes = [which, countedLine(status.stats, now, OLD_SECONDS)].filter((note) => note !== null);
  return [
    ...healthLines(health, healthyLine(status, now), terminal, notes),
    '',
    ...parts.flatMap((part) => partLines(part, terminal, paint)),
  ].join('\n');
}

/** Renders the screen while the mirror cannot be read: only the reasons. */
export function awayScreen(health: Health, terminal: Terminal): string {
  return healthLines(health, '', terminal).join('\n');
}

/**
 * Returns the state with its worst reason, and the other reasons below it. `healthy`: what is said if there is
 * none. `notes`: what the reader has to know about the figures.
 */
function healthLines(
  { state, reasons }: Health,
  healthy: string,
  terminal: Terminal,
  notes: readonly string[] = [],
): string[] {
  const paint = painter(terminal);
  const [worst, ...others] = reasons.map(({ text }) => harmless(text));
  const noted = notes.length === 0 ? '' : ` (${notes.map(harmless).join('; ')})`;
  return [`${state}: ${worst ?? healthy}${noted}`, ...others.map((text) => `  ${text}`)]
    .flatMap((line, i) => wrap(line, terminal.width, i === 0 ? 2 : 4))
    .map((line) => paint(STATE_TINTS[state], paint('bold', line)));
}

function healthyLine({ stats }: Status, now: Date): string {
  const due = sum(stats.due.map((row) => row.count));
  const checked =
    stats.deltaCheckedAt === null
      ? ''
      : `, delta checked ${formatAge(secondsBetween(stats.deltaCheckedAt, now))} ago`;
  return `${count(sum(stats.skus.map((row) => row.count)))} SKUs, ${count(due)} due${checked}`;
}

function partLines({ label, text, tint, rows = [] }: Part, terminal: Terminal, paint: Paint): string[] {
  const shown = label.padEnd(LABEL);
  const lines = wrap(`${shown}${harmless(text)}`.trimEnd(), terminal.width, LABEL);
  const painted = lines.map((line, i) => {
    const [head, body] = i === 0 ? [line.slice(0, shown.length), line.slice(shown.length)] : ['', line];
    return paint('dim', head) + (tint === undefined ? body : paint(tint, body));
  });
  return [...painted, ...rows.map((row) => rowLine(row, terminal, paint))];
}

function rowLine(
  { name, part, whole, number, note = '', tint }: Row,
  terminal: Terminal,
  paint: Paint,
): string {
  const cells = Math.min(WIDEST_BAR, (terminal.width ?? 100) - BESIDE_BAR);
  const indent = ' '.repeat(cells < NARROWEST_BAR ? 2 : LABEL);
  const drawn = cells < NARROWEST_BAR ? '' : paint(tint, bar(part, whole, cells, terminal.ascii, ' '));
  const said = ` ${number.padStart(10)} ${note}`.trimEnd();
  const line = `${indent}${harmless(name).padEnd(10)} ${drawn}${said}`;
  return drawn === '' && terminal.width !== null ? line.slice(0, terminal.width) : line;
}

const newestText = (builtAt: Date | null, ago: (at: Date | null) => string): string =>
  builtAt === null ? 'the partner has named none yet' : `the partner's newest was built ${ago(builtAt)}`;

function catalogParts({ stats, sync, daemons }: Status, ago: (at: Date | null) => string): Part[] {
  const byState = stats.skus.map((s) => `${count(s.count)} ${s.state}/${s.priceSource}`).join(', ');
  const fault = sync.catalogFault === null ? '' : ` (the catalog routes return ${sync.catalogFault})`;
  const refused =
    sync.manifestRefused === null ? '' : `; the newest manifest was refused: ${sync.manifestRefused}`;
  const inScope = scopeText(stats);
  const unsteady = unsteadyLine(stats);
  const broken = sync.chainBrokenAt === null ? '' : '; chain broken, waiting for a new manifest';
  return [
    {
      label: 'catalog',
      text: `${stats.catalogState}${fault}`,
      tint: stats.catalogState === 'ok' ? undefined : 'yellow',
    },
    {
      label: 'snapshot',
      text: `${stats.snapshotId ?? 'none'}; ${newestText(stats.snapshotGeneratedAt, ago)}`,
    },
    {
      label: 'baseline',
      text: `${ago(stats.manifestAppliedAt)}${refused}`,
      tint: refused === '' ? undefined : 'yellow',
    },
    {
      label: 'delta',
      text: `${ago(stats.deltaCheckedAt)}${broken}`,
      tint: broken === '' ? undefined : 'yellow',
    },
    { label: 'daemons', text: daemons === 0 ? 'none running' : `${daemons} running` },
    ...(inScope === null ? [] : [{ label: 'scope', text: inScope }]),
    { label: 'SKUs', text: byState === '' ? 'none yet' : byState },
    ...(unsteady === null ? [] : [{ label: 'columns', text: unsteady, tint: 'yellow' as const }]),
    ...(stats.incident === null
      ? []
      : [{ label: 'incident', text: incidentLine(stats.incident, ago), tint: 'yellow' as const }]),
  ];
}

function freshnessParts({ stats, targets }: Status): Part[] {
  const oldest = Math.max(0, ...stats.priceAge.map((p) => p.oldestSeconds));
  return [
    ...stats.priceAge.map(({ priceSource, ages, oldestSeconds }): Part => {
      const target = targetSeconds(priceSource, targets);
      const fresh = stats.freshSkus.find((f) => f.priceSource === priceSource)?.count ?? 0;
      return {
        label: 'prices',
        text:
          `${priceSource}: target ${interval(target)}, ${percentOf(fresh, ages.count)} of ${count(ages.count)} ` +
          `fresh, oldest ${formatAge(oldestSeconds)}`,
        rows: ageBands(ages, target).map((band) => ({
          name: band.label,
          part: band.count,
          whole: ages.count,
          number: count(band.count),
          note: band.late ? 'over target' : '',
          tint: band.late ? 'yellow' : 'green',
        })),
      };
    }),
    { label: 'actionable', text: actionableLine(stats) },
    { label: 'calibration', text: calibrationLine(stats.calibration) },
    {
      label: 'oldest',
      text:
        `price ${formatAge(oldest)}, metadata ${formatAge(stats.oldestMetadataAgeSeconds)} (target ` +
        `${interval(targets.metadataSeconds)})`,
    },
  ];
}

function backlogParts(status: Status, now: Date): Part[] {
  const { stats } = status;
  const failing = failingLine(stats);
  const hints = hintsLine(stats.hints);
  const promises = promisesLine(stats.promises);
  const estimate = estimateBacklog(status, now);
  const words = estimateLine(estimate);
  const waiting = stats.deferredSkus === 0 ? '' : `, oldest ${formatAge(stats.oldestDeferredAgeSeconds)}`;
  return [
    {
      label: 'backlog',
      text: `${count(estimate.owed)} due now${words === '' ? '' : `, ${words}`}`,
      rows: stats.due.map(({ reason, count: n, oldestAgeSeconds }) => ({
        name: reason,
        part: n,
        whole: sum(stats.due.map((row) => row.count)),
        number: count(n),
        note: `oldest ${formatAge(oldestAgeSeconds)}`,
        tint: 'cyan',
      })),
    },
    ...(failing === null ? [] : [{ label: 'failing', text: failing, tint: 'yellow' as const }]),
    { label: 'deferred', text: `${count(stats.deferredSkus)}${waiting}` },
    { label: 'audit', text: auditLine(stats.deltaAudit) },
    ...(hints === null ? [] : [{ label: 'hints', text: hints }]),
    ...(promises === null ? [] : [{ label: 'promises', text: promises }]),
  ];
}

function paceParts({ stats, failedCalls }: Status, now: Date): Part[] {
  return [
    { label: 'live', text: liveLine(stats) },
    {
      label: 'pace',
      text: paceLine(stats, now),
      tint: stats.pace.refusal === null ? undefined : 'yellow',
      rows: [paceRow(stats)],
    },
    ...(failedCalls === 0
      ? []
      : [
          {
            label: 'calls',
            text:
              failedCalls === 1 ? 'the last bulk call failed' : `${failedCalls} bulk calls failed in a row`,
            tint: 'yellow' as const,
          },
        ]),
  ];
}

function paceRow({ pace }: MirrorStats): Row {
  return {
    name: 'used',
    part: pace.usedInWindow,
    whole: pace.mostInWindow,
    number: `${count(pace.usedInWindow)}/${count(pace.mostInWindow)}`,
    note: pace.othersInWindow > 0 ? 'beside other services' : 'of the share',
    tint: 'cyan',
  };
}

const failuresInRow = (n: number): string => (n === 1 ? 'failed once' : `${n} failures in a row`);

function taskPart(task: TaskState, now: Date): Part {
  const label = `task ${task.task}`.padEnd(20);
  if (task.running) {
    const shown = Object.entries(task.progress ?? {}).map(([key, value]) => `${key} ${value ?? '?'}`);
    return { label, text: `running ${shown.join(', ')}`.trimEnd() };
  }
  const failures = task.failures > 0 ? `, ${failuresInRow(task.failures)}` : '';
  const last =
    task.succeededAt === null ? '' : `, last success ${formatAge(secondsBetween(task.succeededAt, now))} ago`;
  return {
    label,
    text: `${task.outcome ?? 'not run yet'}${last}${failures}, next in ${formatAge(Math.max(0, secondsBetween(now, task.nextAt)))}`,
    tint: task.failures > 0 ? 'yellow' : undefined,
  };
}
