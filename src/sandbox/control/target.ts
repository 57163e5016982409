import type { SandboxClock } from '../clock.ts';
import type { State } from '../state.ts';

/** What the control routes work on. */
export interface ControlTarget {
  readonly state: State;
  readonly clock: SandboxClock;
  step(): void;
  reset(seed?: number): void;
}

/** One control call. */
export interface ControlCall {
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

/** A moment as the control routes write it. */
export function written(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** The last rows of a list, the newest first, and how many there are; `?limit=`, by default 100. */
export function newest<T>(rows: readonly T[], query: URLSearchParams): { total: number; rows: T[] } {
  const limit = Number(query.get('limit') ?? 100);
  const count = Number.isInteger(limit) && limit > 0 ? limit : 100;
  return { total: rows.length, rows: rows.slice(-count).toReversed() };
}
