import { harmless, painter, type Terminal, type Tint, wrap } from '../../status/style.ts';
import type { CheckResult } from './check.ts';
import type { SentRequest } from './partner.ts';

export interface Report {
  readonly findings: readonly CheckResult[];
  readonly requests: readonly SentRequest[];
  readonly most: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly unknown: readonly string[];
}

const TINTS: Readonly<Record<CheckResult['level'], Tint>> = { OK: 'green', WARN: 'yellow', FAIL: 'red' };
const LEVEL = 5;
const CHECK = 17;

const countOf = ({ findings }: Report, level: CheckResult['level']): number =>
  findings.filter((finding) => finding.level === level).length;

/** Returns the report for programs. Its members are documented in docs/doctor.md and only ever added to. */
export function reportJson(report: Report): Record<string, unknown> {
  const { findings, requests, most, settings, unknown } = report;
  return {
    ok: countOf(report, 'FAIL') === 0,
    checks: findings.map(({ check, level, text, remedy }) => ({ check, level, text, todo: remedy ?? null })),
    requests: { most, sent: requests },
    settings: Object.entries(settings).map(([name, value]) => ({ name, value })),
    unknown,
  };
}

/**
 * Formats the report for people: a line per check, what to do below it, then the settings as in an environment file.
 * Pure.
 */
export function screenOf(report: Report, terminal: Terminal): string {
  const paint = painter(terminal);
  const { findings, unknown } = report;
  const [fails, warns] = [countOf(report, 'FAIL'), countOf(report, 'WARN')];
  const summary =
    fails > 0 ? `${fails} FAIL, ${warns} WARN` : warns > 0 ? `no FAIL, ${warns} WARN` : 'all checks passed';
  const tint = fails > 0 ? 'red' : warns > 0 ? 'yellow' : 'green';
  return [
    ...findings.flatMap((finding) => linesOf(finding, terminal)),
    ...settingsLines(report, paint),
    ...(unknown.length === 0 ? [] : ['', paint('bold', '# not determined')]),
    ...unknown.flatMap((line) => wrap(`# ${harmless(line)}`, terminal.width, 2)),
    '',
    ...wrap(`${summary}; ${requestsLine(report)}`, terminal.width, 2).map((line) => paint(tint, line)),
  ].join('\n');
}

function linesOf({ level, check, text, remedy }: CheckResult, terminal: Terminal): string[] {
  const paint = painter(terminal);
  const indent = LEVEL + CHECK;
  const [first = '', ...rest] = wrap(`${' '.repeat(indent)}${harmless(text)}`, terminal.width, indent);
  const arrow = terminal.ascii ? '->' : '→';
  const advice =
    remedy === undefined
      ? []
      : wrap(`${' '.repeat(indent)}${arrow} ${harmless(remedy)}`, terminal.width, indent + 2);
  const head = `${paint(TINTS[level], level.padEnd(LEVEL))}${check.padEnd(CHECK)}`;
  return [`${head}${first.slice(indent)}`, ...rest, ...advice.map((line) => paint('cyan', line))];
}

function settingsLines({ settings }: Report, paint: ReturnType<typeof painter>): string[] {
  const lines = Object.entries(settings).flatMap(([name, value]) => {
    const line = envLine(name, value);
    return line === null ? [] : [line];
  });
  return lines.length === 0 ? [] : ['', paint('bold', '# settings to pin'), ...lines];
}

/**
 * Returns `NAME=value` for an environment file, without quotes, which Docker keeps; null if such files are read in
 * different ways (`parseEnvFile`): in the .env of compose, `$` begins a variable, and a `#` after a blank a comment.
 */
export function envLine(name: string, value: string): string | null {
  return value === '' || /^['"\s]|\s$|\s#|[\\$\p{Cc}]/u.test(value) ? null : `${name}=${value}`;
}

function requestsLine({ requests, most }: Report): string {
  const sent = requests.map(({ route, outcome }) => (outcome === 'ok' ? route : `${route} (${outcome})`));
  return `${requests.length} of at most ${most} requests sent${sent.length === 0 ? '' : `: ${sent.join(', ')}`}`;
}
