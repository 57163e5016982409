import { MINUTE_MS } from '../../lib/duration.ts';
import type { AnswerCounts } from './learn.ts';

/*
 * Any SKU may be deferred because of the ceiling on live computations, or of a call's budget. Some SKUs are deferred
 * whenever they are asked for while all others are computed: one exceeds the work budget by itself, or its live source
 * is down (partner rule 2.5.deferred). These say nothing of either limit. Their past gives them away: a SKU that was
 * deferred when it was asked before, and is again, is left out. For SKUs that are deferred for the first time only the
 * ones before them can tell: if most of those are deferred again after their wait while others are not, as in an outage
 * of some live sources, so will most of the new ones. Pure; times in epoch milliseconds of the database's clock.
 */

/** SKUs that were computed or deferred, and how many of them were deferred. */
export interface Asks {
  readonly asked: number;
  readonly deferred: number;
}

/** What a call, or some calls together, showed of live SKUs. */
export interface LiveAsks {
  /** When the first answer was there. */
  readonly at: number;
  /** Of those that were not deferred when they were asked before. */
  readonly first: Asks;
  /** Of those that were then, for the first time: what becomes of them tells why. */
  readonly second: Asks;
  /** Of those that were deferred more often. */
  readonly later: Asks;
}

interface ComputedMinute {
  readonly at: number;
  readonly computed: number;
}

export interface Remembered {
  readonly calls: readonly LiveAsks[];
  readonly minutes: readonly ComputedMinute[];
  /**
   * Calls of the last minute, but none from before more was deferred than expected: what comes after that is judged by
   * itself.
   */
  readonly lately: readonly LiveAsks[];
  /** SKUs are deferred for reasons of their own, as those show that were deferred again. */
  readonly explained: boolean;
}

export const NOTHING_REMEMBERED: Remembered = {
  calls: [],
  minutes: [],
  lately: [],
  explained: false,
};

const REMEMBERED_MS = 600_000;
/** What was computed in a minute is remembered for so long. */
const PROVEN_MS = 30 * MINUTE_MS;
/** Calls within this are remembered as one. */
const TOGETHER_MS = 5000;
/** Second asks that are taken for computed beside those that were: a few show little. */
const DOUBT = 2;
/** Standard deviations by which more may be deferred than is expected. */
const SPREAD = 3;
/**
 * SKUs deferred again, and the part that these are of all second asks, from which on deferrals are explained; and
 * below which they are not.
 */
const EXPLAINED_SKUS = 5;
const EXPLAINED_PART = 0.5;
const UNEXPLAINED_PART = 0.3;
/**
 * Fewer second asks do not show that SKUs are deferred alike, nor do they of fewer that were deferred some minutes ago.
 */
const ENOUGH = 10;
const ENOUGH_BEFORE = 30;
const BEFORE_MS = 240_000;
const ALIKE_PART = 0.3;
/** So many SKUs of so long show that those that were deferred again and again are computed again. */
const RECOVERED_SKUS = 3;
const RECOVERED_MS = 120_000;

function sum(calls: readonly LiveAsks[], which: 'first' | 'second' | 'later'): Asks {
  let [asked, deferred] = [0, 0];
  for (const call of calls) {
    asked += call[which].asked;
    deferred += call[which].deferred;
  }
  return { asked, deferred };
}

/** Calls of the last `forMs`, after another one. A clock that was set back leaves nothing of the future. */
function afterCall(before: readonly LiveAsks[], call: LiveAsks, forMs: number): readonly LiveAsks[] {
  const last = before.at(-1);
  if (last === undefined || Math.abs(call.at - last.at) >= TOGETHER_MS)
    return [...before.filter(({ at }) => Math.abs(call.at - at) < forMs), call];
  const both = [last, call];
  return before.with(before.length - 1, {
    at: last.at,
    first: sum(both, 'first'),
    second: sum(both, 'second'),
    later: sum(both, 'later'),
  });
}

/** Part of the SKUs asked for the first time that is deferred for reasons of their own. */
function ownPart(calls: readonly LiveAsks[]): number {
  const [first, second] = [sum(calls, 'first'), sum(calls, 'second')];
  const part = first.deferred / Math.max(1, first.asked);
  const again = second.deferred / (second.asked + DOUBT);
  // For a limit of the partner's those that were deferred before are as often as any others.
  return part < 1 ? part * Math.max(0, (again - part) / (1 - part)) : 0;
}

function isExplained(calls: readonly LiveAsks[], was: boolean): boolean {
  const { asked, deferred } = sum(calls, 'second');
  if (was) return deferred > UNEXPLAINED_PART * asked;
  return deferred >= EXPLAINED_SKUS && deferred >= EXPLAINED_PART * asked;
}

/** Computed SKUs by the minute, after a call. */
function afterMinute(
  before: readonly ComputedMinute[],
  { at, ...asks }: LiveAsks,
): readonly ComputedMinute[] {
  const computed = Object.values(asks).reduce((n, { asked, deferred }) => n + asked - deferred, 0);
  const last = before.at(-1);
  if (last !== undefined && Math.abs(at - last.at) < MINUTE_MS)
    return before.with(before.length - 1, { at: last.at, computed: last.computed + computed });
  return [...before.filter((minute) => Math.abs(at - minute.at) < PROVEN_MS), { at, computed }];
}

export interface AfterAsks {
  readonly remembered: Remembered;
  /**
   * Reasons of the SKUs' own explain all that were deferred for the first time in the last minute, so nothing is
   * learned of them.
   */
  readonly expected: boolean;
  /**
   * The most that was computed in a minute before, if deferrals are explained from this call on: a ceiling that was
   * lowered because of them returns to it. Null: nothing of the kind is known.
   */
  readonly proven: number | null;
}

/** Takes in what a call showed. */
export function afterAsks(before: Remembered, call: LiveAsks): AfterAsks {
  const calls = afterCall(before.calls, call, REMEMBERED_MS);
  const lately = afterCall(before.lately, call, MINUTE_MS);
  const minutes = afterMinute(before.minutes, call);
  const explained = isExplained(calls, before.explained);
  const proven = explained && !before.explained ? Math.max(...minutes.map(({ computed }) => computed)) : null;
  const remembered = { calls, lately, minutes, explained };
  if (call.first.deferred === 0) return { remembered, expected: true, proven };
  const first = sum(lately, 'first');
  const mean = ownPart(calls) * first.asked;
  const expected = first.deferred <= mean + SPREAD * Math.sqrt(mean);
  return { remembered: expected ? remembered : { ...remembered, lately: [] }, expected, proven };
}

/** Whether enough SKUs were asked again after a deferral to say that they are deferred like all others. */
export function areAlike({ calls }: Remembered, now: number): boolean {
  const before = calls.filter(({ at }) => at <= now - BEFORE_MS);
  const second = sum(
    calls.filter(({ at }) => at > now - BEFORE_MS),
    'second',
  );
  if (sum(before, 'first').deferred < ENOUGH_BEFORE || second.asked < ENOUGH) return false;
  return second.deferred < ALIKE_PART * second.asked;
}

/** Whether SKUs that were deferred again and again are mostly computed by now. */
export function areRecovering({ calls }: Remembered): boolean {
  const last = calls.at(-1)?.at ?? 0;
  const { asked, deferred } = sum(
    calls.filter(({ at }) => at > last - RECOVERED_MS),
    'later',
  );
  return asked >= RECOVERED_SKUS && deferred < asked / 2;
}

/**
 * What a call showed of live SKUs, without those whose deferral teaches nothing: all deferred ones if that was
 * `expected`, else the `again` SKUs that had been deferred before.
 */
export function withoutOwn(
  live: AnswerCounts,
  { again, expected }: { readonly again: number; readonly expected: boolean },
): AnswerCounts {
  const left = expected ? live.deferred : again;
  return { ...live, asked: live.asked - left, deferred: live.deferred - left };
}
