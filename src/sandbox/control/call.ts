import type { SandboxClock } from '../clock.ts';
import { LONGEST_MS, LONGEST_TIMER_MS } from '../options.ts';
import type { State } from '../state.ts';

/** What the control routes work on. */
export interface ControlTarget {
  readonly state: State;
  readonly clock: SandboxClock;
  step(): void;
  reset(seed?: number): void;
}

/** One control call. */
interface ControlCall {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: string;
}

export interface ControlAnswer {
  readonly status: number;
  readonly body: object;
}

export type ControlHandler = (target: ControlTarget, call: ControlCall) => ControlAnswer;

export function done(body: object, status = 200): ControlAnswer {
  return { status, body };
}

/** Formats a moment as the control routes do. */
export function written(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** Returns the last rows of a list, newest first, and the total; at most `?limit=`, by default 100. */
export function newest<T>(rows: readonly T[], query: URLSearchParams): { total: number; rows: T[] } {
  const limit = Number(query.get('limit') ?? 100);
  const count = Number.isInteger(limit) && limit > 0 ? limit : 100;
  return { total: rows.length, rows: rows.slice(-count).toReversed() };
}

/** A control call that cannot be done. The message says what to do about it. */
export class ControlProblem extends Error {
  override readonly name = 'ControlProblem';
  readonly kind = 'control';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Type of a member in a control call's body. */
export interface Kind<T> {
  /** How a message continues after the member's name. */
  readonly must: string;
  /** Returns undefined if the value does not fit. */
  readonly read: (value: unknown) => T | undefined;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export const flag: Kind<boolean> = {
  must: 'must be true or false',
  read: (value) => (typeof value === 'boolean' ? value : undefined),
};

export const text: Kind<string> = {
  must: 'must be a string that is not empty',
  read: (value) => (typeof value === 'string' && value !== '' ? value : undefined),
};

/** A duration in the format of the options, read into milliseconds. */
const atMost = (mostMs: number, most: string): Kind<number> => ({
  must: `must be a duration of at most ${most}: "500ms", "30s", "5m", "1h", "1d"`,
  read: (value) => {
    const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(String(value)) ?? [];
    const ms = Math.round(Number(amount) * (UNITS[unit] ?? Number.NaN));
    return ms <= mostMs ? ms : undefined;
  },
});

export const duration = atMost(LONGEST_MS, 'a year');

/** A duration that becomes a timer. */
export const delay = atMost(LONGEST_TIMER_MS, '24 days');

/** A moment with its zone, in epoch milliseconds. */
export const moment: Kind<number> = {
  must: 'must be a moment with its zone: "2026-01-01T00:00:00Z"',
  read: (value) => {
    const at =
      typeof value === 'string' && /(?:Z|[+-]\d\d:\d\d)$/.test(value) ? Date.parse(value) : Number.NaN;
    return Number.isNaN(at) ? undefined : at;
  },
};

export function whole(min: number, max: number): Kind<number> {
  const fits = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
  return {
    must: `must be a whole number from ${min} to ${max}`,
    read: (value) => (fits(value) ? value : undefined),
  };
}

export function choice<const T extends string>(...words: readonly T[]): Kind<T> {
  return {
    must: `must be ${words.map((word) => `"${word}"`).join(' or ')}`,
    read: (value) => words.find((word) => word === value),
  };
}

/** Allows null besides the kind. */
export function orNull<T>(kind: Kind<T>): Kind<T | null> {
  return { must: `${kind.must}, or null`, read: (value) => (value === null ? null : kind.read(value)) };
}

/** An object whose values are all of one kind. */
export function mapOf<T>(kind: Kind<T>, example: string): Kind<Record<string, T>> {
  return {
    must: `must be an object such as ${example}; each value ${kind.must}`,
    read: (value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
      const entries = Object.entries(value).map(([name, each]) => [name, kind.read(each)] as const);
      return entries.some(([, each]) => each === undefined)
        ? undefined
        : (Object.fromEntries(entries) as Record<string, T>);
    },
  };
}

type Kinds = Readonly<Record<string, Kind<unknown>>>;
type Members<Asked extends Kinds> = {
  [Name in keyof Asked]?: Asked[Name] extends Kind<infer T> ? T : never;
};

/** Reads the members of a call's JSON body, all optional. Throws a ControlProblem that names everything wrong. */
export function readMembers<Asked extends Kinds>(body: string, asked: Asked): Members<Asked> {
  const given = parse(body);
  const names = Object.keys(asked);
  const unknown = Object.keys(given).filter((name) => !names.includes(name));
  const takes = names.length === 0 ? 'it takes none' : `it takes ${names.join(', ')}`;
  const problems = unknown.length === 0 ? [] : [`no such member: ${unknown.join(', ')} (${takes})`];
  const members: Record<string, unknown> = {};
  for (const [name, kind] of Object.entries(asked)) {
    if (!Object.hasOwn(given, name)) continue;
    const value = kind.read(given[name]);
    if (value === undefined) problems.push(`${name} ${kind.must}`);
    else members[name] = value;
  }
  if (problems.length > 0) throw new ControlProblem(400, problems.join('; '));
  return members as Members<Asked>;
}

function parse(body: string): Record<string, unknown> {
  if (body.trim() === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new ControlProblem(400, 'the body must be JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ControlProblem(400, 'the body must be a JSON object');
  return value as Record<string, unknown>;
}
