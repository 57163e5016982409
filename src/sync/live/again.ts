import { MINUTE_MS } from '../../lib/duration.ts';
import type { AnswerCounts } from './learn.ts';

/*
 * Any SKU may be deferred because of the ceiling on live computations, or of a call's budget. Some SKUs are
 * deferred whenever they are asked for while all others are computed: one exceeds the work budget on its own, or
 * its live source is down (partner rule 2.5.deferred). These say nothing about either limit. Their past identifies
 * them: a SKU that was deferred the last time and is deferred again is left out. For SKUs that are deferred for
 * the first time, only earlier ones can tell: if most of those are deferred again after their wait while others
 * are not, as in an outage of some live sources, so will most of the new ones. Pure; times in epoch milliseconds
 * of the database's clock.
 */

/** SKUs that were computed or deferred, and how many of them were deferred. */
export interface Asks {
  readonly asked: number;
  readonly deferred: number;
}

/** What one call, or several together, showed of live SKUs. */
export interface LiveAsks {
  /** When the first answer arrived. */
  readonly at: number;
  /** SKUs that were not deferred the last time. */
  readonly first: Asks;
  /** SKUs that were deferred the last time only: what becomes of them shows why. */
  readonly second: Asks;
  /** SKUs that were deferred more often. */
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
   * Calls of the last minute. Emptied when more is deferred than expected, so that later calls are judged on their
   * own.
   */
  readonly lately: readonly LiveAsks[];
  /** Whether SKUs are deferred for reasons of their own, as those that were deferred again show. */
  readonly explained: boolean;
}

export const NOTHING_REMEMBERED: Remembered = {
  calls: [],
  minutes: [],
  lately: [],
  explained: false,
};

const REMEMBERED_MS = 600_000;
/** How long the number of SKUs computed in a minute is remembered. */
const PROVEN_MS = 30 * MINUTE_MS;
/** Calls within this time are remembered as one. */
const TOGETHER_MS = 5000;
/** Second asks that are assumed to have been computed, beside the real ones, because a few show little. */
const DOUBT = 2;
/** By how many standard deviations more may be deferred than expected. */
const SPREAD = 3;
/**
 * From how many SKUs deferred again, and from which part of all second asks, deferrals are explained; and below
 * which part they no longer are.
 */
const EXPLAINED_SKUS = 5;
const EXPLAINED_PART = 0.5;
const UNEXPLAINED_PART = 0.3;
/**
 * Second asks, and first deferrals BEFORE_MS ago or earlier, that it takes to show that SKUs are deferred alike.
 */
const ENOUGH = 10;
const ENOUGH_BEFORE = 30;
const BEFORE_MS = 240_000;
const ALIKE_PART = 0.3;
/** This many asks in this time can show that SKUs deferred again and again are computed again. */
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

/**
 * Returns the calls of the last `forMs`, including this one. Calls in the future of a clock that was set back are
 * dropped.
 */
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

/** Returns the part of the SKUs asked for the first time that is deferred for reasons of their own. */
function ownPart(calls: readonly LiveAsks[]): number {
  const [first, second] = [sum(calls, 'first'), sum(calls, 'second')];
  const part = first.deferred / Math.max(1, first.asked);
  const again = second.deferred / (second.asked + DOUBT);
  // Under a limit of the partner's, SKUs that were deferred before are deferred as often as any others.
  return part < 1 ? part * Math.max(0, (again - part) / (1 - part)) : 0;
}

function isExplained(calls: readonly LiveAsks[], was: boolean): boolean {
  const { asked, deferred } = sum(calls, 'second');
  if (was) return deferred > UNEXPLAINED_PART * asked;
  return deferred >= EXPLAINED_SKUS && deferred >= EXPLAINED_PART * asked;
}

/** Returns the computed SKUs by minute, after a call. */
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
   * Whether the SKUs' own reasons explain all first deferrals of the last minute, so that nothing is learned from
   * them.
   */
  readonly expected: boolean;
  /**
   * The most that was computed in a remembered minute, if deferrals are explained from this call on: a ceiling
   * that was lowered because of them returns to it. Null otherwise.
   */
  readonly proven: number | null;
}

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

/** Decides whether enough SKUs were asked again after a deferral to say that they are deferred like all others. */
export function areAlike({ calls }: Remembered, now: number): boolean {
  const before = calls.filter(({ at }) => at <= now - BEFORE_MS);
  const second = sum(
    calls.filter(({ at }) => at > now - BEFORE_MS),
    'second',
  );
  if (sum(before, 'first').deferred < ENOUGH_BEFORE || second.asked < ENOUGH) return false;
  return second.deferred < ALIKE_PART * second.asked;
}

/** Decides whether SKUs that were deferred again and again are now mostly computed. */
export function areRecovering({ calls }: Remembered): boolean {
  const last = calls.at(-1)?.at ?? 0;
  const { asked, deferred } = sum(
    calls.filter(({ at }) => at > last - RECOVERED_MS),
    'later',
  );
  return asked >= RECOVERED_SKUS && deferred < asked / 2;
}

/**
 * Returns what a call showed of live SKUs, without those whose deferral teaches nothing: all deferred ones if that
 * was `expected`, else the `again` SKUs that had been deferred before.
 */
export function withoutOwn(
  live: AnswerCounts,
  { again, expected }: { readonly again: number; readonly expected: boolean },
): AnswerCounts {
  const left = expected ? live.deferred : again;
  return { ...live, asked: live.asked - left, deferred: live.deferred - left };
}
