import type { LivePlan } from '../../store/live.ts';
import type { Lesson } from '../../store/bulk-call.ts';
import type { SyncEvent, SyncSettings } from '../context.ts';
import { type IncidentEvidence, incidentEvent, judgeIncident } from './incident.ts';

/*
 * What a bulk call teaches: the live budget of a call, the ceiling on live computations in time, and whether an incident
 * has begun or is over. What answers teach of a single SKU's rate is part of applying them (policy.ts). Pure.
 */

/** State at the time a call was planned. */
export interface Known {
  readonly plan: LivePlan;
  /** Live SKUs a call, as learned or else as configured. */
  readonly budget: number;
  /** Whether the call tests if an incident is over. */
  readonly trial: boolean;
}

/** What a call showed of the SKUs that counted as live, or of those that did not, when they were claimed. */
export interface Shown {
  readonly asked: number;
  /** With a record or as not found. */
  readonly answered: number;
  readonly deferred: number;
}

export interface ShownByCall {
  readonly live: Shown;
  readonly snapshot: Shown;
  /** Of a trial call: those that the catalog lists as snapshot-priced, however they count. */
  readonly tried?: Shown;
}

export interface Taught {
  readonly lesson: Lesson;
  readonly events: readonly SyncEvent[];
  /** Emitted only if the lesson's incident was stored. */
  readonly incidentEvent: SyncEvent | null;
}

/** All that an answered call teaches under `settings`: what to store, and the events to emit. */
export function learn(
  { plan, budget, trial }: Known,
  { live, snapshot, tried }: ShownByCall,
  settings: Pick<SyncSettings, 'bulk' | 'callsPerMinute'>,
): Taught {
  const events: SyncEvent[] = [];
  const showsLive = live.answered + live.deferred + snapshot.deferred > 0;
  const ceiling = showsLive ? ceilingAfter(plan, budget, live, snapshot, settings) : null;
  if (ceiling !== null && ceiling.perMinute !== plan.ceilingPerMinute) {
    const perMinute = ceiling.perMinute === null ? null : Math.round(ceiling.perMinute);
    events.push({ event: 'live-ceiling.learned', perMinute });
  }
  const learned = learnLiveBudget(
    budget,
    {
      askedLive: live.asked,
      deferredLive: live.deferred,
      deferredOthers: snapshot.deferred,
      bestRecent: plan.best,
    },
    { start: settings.bulk.liveBudget, most: settings.bulk.maxSkus },
  );
  if (Math.floor(learned) !== Math.floor(budget))
    events.push({ event: 'live-budget.learned', budget: Math.floor(learned) });
  const call = {
    computed: live.answered,
    deferred: live.deferred,
    snapshotAsked: snapshot.asked,
    snapshotDeferred: snapshot.deferred,
  };
  const evidence = evidenceOf(plan, trial, tried, snapshot);
  const incident = evidence === null ? null : incidentAfter(plan, evidence);
  return {
    lesson: {
      call: showsLive ? call : null,
      budget: learned === budget ? null : learned,
      ceiling,
      trial,
      incident,
    },
    events,
    incidentEvent:
      incident === null || evidence === null
        ? null
        : incidentEvent(incident, incidentMinutes(plan), evidence),
  };
}

/** The ceiling after a call; null where it stays as it was. */
function ceilingAfter(
  plan: LivePlan,
  budget: number,
  live: Shown,
  snapshot: Shown,
  { callsPerMinute }: Pick<SyncSettings, 'callsPerMinute'>,
): LiveCeiling | null {
  // A call that asked no more than calls have had answered was not deferred for its size.
  const withinBudget = snapshot.deferred === 0 && live.asked <= plan.best;
  const before = ceilingOf(plan);
  const after = learnLiveCeiling(
    before,
    {
      deferredAll: withinBudget && live.deferred > 0 && live.answered === 0,
      computed: plan.computed + live.answered,
      capacity: callsPerMinute * budget,
    },
    plan.now,
  );
  return after === before ? null : after;
}

/** What a call says for or against an incident: a trial call's answers, or snapshot-priced SKUs that were deferred. */
function evidenceOf(
  plan: LivePlan,
  trial: boolean,
  tried: Shown | undefined,
  snapshot: Shown,
): IncidentEvidence | null {
  if (trial)
    return tried === undefined ? null : { kind: 'trial', asked: tried.asked, answered: tried.answered };
  if (plan.incident !== null || snapshot.deferred === 0) return null;
  const { asked, deferred } = plan.snapshotDeferrals;
  return { kind: 'deferrals', asked: asked + snapshot.asked, deferred: deferred + snapshot.deferred };
}

/** An incident's cause before and after a piece of evidence; null where nothing changes. */
function incidentAfter(plan: LivePlan, evidence: IncidentEvidence): Lesson['incident'] {
  const from = plan.incident?.because ?? null;
  const to = judgeIncident(from, evidence);
  return to === from ? null : { from, to };
}

function incidentMinutes({ incident, now }: LivePlan): number {
  return incident === null ? 0 : Math.round((now - incident.since) / 60_000);
}

/** What one bulk call showed of the partner's live budget (partner rule 4.1.3: five at present). */
export interface LiveObservation {
  /** SKUs in the call that the mirror counted as live, and how many of them were deferred. */
  readonly askedLive: number;
  readonly deferredLive: number;
  /** SKUs deferred although the mirror had them as snapshot-priced. */
  readonly deferredOthers: number;
  /** The most live SKUs that one call of the last minute had answered: proof of the budget, when a ceiling defers. */
  readonly bestRecent?: number;
}

/** Growth a clean call earns: quickly back to the configured budget, then one trial of one more in a hundred calls. */
const RECOVERY = 0.1;
const CURIOSITY = 0.01;

/**
 * The live budget of a call, learned: what was answered is what the budget holds, and full calls without deferral raise
 * it. Calls in which SKUs taken for snapshot-priced were deferred teach nothing of it: these used the budget unseen.
 */
export function learnLiveBudget(
  budget: number,
  seen: LiveObservation,
  limits: { readonly start: number; readonly most: number },
): number {
  if (seen.deferredOthers > 0) return budget;
  if (seen.deferredLive > 0) {
    const proven = Math.max(seen.askedLive - seen.deferredLive, seen.bestRecent ?? 0);
    return Math.max(1, proven, Math.floor(budget) - 1);
  }
  if (seen.askedLive < Math.floor(budget)) return budget;
  const raised = budget + (budget < limits.start ? RECOVERY : CURIOSITY);
  return Math.min(limits.most, budget < limits.start ? Math.min(raised, limits.start) : raised);
}

/*
 * The partner also limits live computations in time, by how much is not documented (partner rules 4.1.3, 8.open).
 * The ceiling is learned: deferrals within the budget of a call mean that it was met. Pure; times in epoch milliseconds.
 */

export interface LiveCeiling {
  /** Live computations a minute at `at`; null while no ceiling has been met. */
  readonly perMinute: number | null;
  /** Where none has been met: when a call last looked as if there were one. */
  readonly at: number;
}

export const NO_CEILING: LiveCeiling = { perMinute: null, at: 0 };

/**
 * What is tried again is a little more than what was met: at first so little that deferrals stay rare, and after some
 * minutes without any, more, so that a ceiling that was raised is found.
 */
const CAREFUL_MINUTES = 5;
const CAREFUL_GROWTH = 0.005;
const GROWTH_A_MINUTE = 1.03;
const CAUTION = 0.99;
const LEAST = 5;
/**
 * SKUs that became live since the last delta use a call's budget unseen, and may have used all of it: a first ceiling takes
 * two such calls within this time. At a ceiling the second comes at once.
 */
const SUSPECTED_MS = 60_000;

export function ceilingOf({ ceilingPerMinute, ceilingAt }: LivePlan): LiveCeiling {
  return { perMinute: ceilingPerMinute, at: ceilingAt };
}

/** The ceiling as it may be tried at `now`; Infinity where none was met. */
export function liveCeilingAt({ perMinute, at }: LiveCeiling, now: number): number {
  if (perMinute === null) return Infinity;
  const minutes = Math.max(0, now - at) / 60_000;
  const careful = 1 + CAREFUL_GROWTH * Math.min(minutes, CAREFUL_MINUTES);
  return perMinute * careful * GROWTH_A_MINUTE ** Math.max(0, minutes - CAREFUL_MINUTES);
}

/**
 * The ceiling after a call. `deferredAll`: it asked for live SKUs within the budget of a call, and none was computed: a
 * part of them may be deferred for SKUs that use the budget unseen, all of them hardly ever but at the ceiling. `computed`: live
 * computations in the last minute, this call's included; `capacity`: what all calls could ever ask in a minute, beyond
 * which a ceiling is none.
 */
export function learnLiveCeiling(
  ceiling: LiveCeiling,
  call: {
    readonly deferredAll: boolean;
    readonly computed: number;
    readonly capacity: number;
  },
  now: number,
): LiveCeiling {
  if (call.deferredAll) {
    const first = ceiling.perMinute === null && now > ceiling.at + SUSPECTED_MS;
    if (first) return { perMinute: null, at: now };
    return { perMinute: Math.max(LEAST, CAUTION * call.computed), at: now };
  }
  const forgotten =
    ceiling.perMinute !== null && liveCeilingAt(ceiling, now) > call.capacity * GROWTH_A_MINUTE;
  return forgotten ? NO_CEILING : ceiling;
}

/**
 * How many live SKUs the next call may carry: what the minute has left, spread evenly over the calls of a minute.
 * `recent`: live SKUs asked for in the last minute and not deferred, calls under way included.
 */
export function liveAllowance(
  ceiling: LiveCeiling,
  now: number,
  recent: number,
  callsPerMinute: number,
): number {
  const perMinute = liveCeilingAt(ceiling, now);
  if (perMinute === Infinity) return Infinity;
  return Math.max(
    0,
    Math.min(Math.floor(perMinute - recent), Math.ceil(perMinute / Math.max(1, callsPerMinute))),
  );
}
