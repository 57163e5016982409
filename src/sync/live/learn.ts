import type { Lesson } from '../../store/call/call-lesson.ts';
import type { LiveCeiling } from '../../store/live/limits.ts';
import type { LivePlan } from '../../store/live/live.ts';
import type { SyncEvent } from '../events.ts';
import type { SyncSettings } from '../settings.ts';
import { type CeilingEvidence, learnLiveCeiling, meetsCeiling } from './ceiling.ts';
import { type IncidentEvidence, incidentEvent, judgeIncident } from './incident.ts';

/*
 * What a bulk call teaches: a call's live budget, the ceiling on live computations over time (ceiling.ts), and
 * whether an incident has begun or ended. What answers teach about a single SKU's rate is learned when they are
 * applied (learn-refresh.ts). Pure.
 */

/** The state when a call was planned. */
export interface CallContext {
  readonly plan: LivePlan;
  /** Live SKUs per call, as learned, or else as configured. */
  readonly budget: number;
  /** Whether the call tests if an incident is over. */
  readonly trial: boolean;
  /** SKUs that a call may have at present. */
  readonly callSkus: number;
}

/** What a call showed of the SKUs that counted as live when they were claimed, or of the others. */
export interface AnswerCounts {
  readonly asked: number;
  /** With a record, or as not found. */
  readonly answered: number;
  readonly deferred: number;
}

export interface CallEvidence {
  /** Without SKUs whose deferral teaches nothing (again.ts). */
  readonly live: AnswerCounts;
  readonly snapshot: AnswerCounts;
  /** In a trial call: SKUs that the catalog lists as snapshot-priced, whatever they count as. */
  readonly tried?: AnswerCounts;
  /**
   * The SKUs of `snapshot` that the catalog lists as such, if others were asked with them: an unlisted SKU may
   * always be computed live.
   */
  readonly listed?: AnswerCounts;
  /** Whether live SKUs that were deferred are deferred again no more often than others (again.ts). */
  readonly alike?: boolean;
  /**
   * What was computed in a minute before the ceiling was lowered because of SKUs that are deferred for reasons of
   * their own; null: it was not.
   */
  readonly proven?: number | null;
  /** When it was claimed and when its answer arrived, in epoch milliseconds of the database's clock. */
  readonly askedAt: number;
  readonly answeredAt: number;
}

export interface CallLesson {
  readonly lesson: Lesson;
  readonly events: readonly SyncEvent[];
  /** Emitted only if the lesson's incident was stored. */
  readonly incidentEvent: SyncEvent | null;
}

/** Returns all that an answered call teaches under `settings`: what to store, and the events to emit. */
export function learn(
  { plan, budget, trial, callSkus }: CallContext,
  shown: CallEvidence,
  settings: Pick<SyncSettings, 'bulk' | 'callsPerMinute'>,
): CallLesson {
  const { live, snapshot, tried, listed = snapshot } = shown;
  const events: SyncEvent[] = [];
  const showsLive = live.answered + live.deferred + snapshot.deferred > 0;
  const evidenceOfCeiling = ceilingEvidence(shown, budget, settings);
  const ceiling = learnLiveCeiling(plan, evidenceOfCeiling, settings.callsPerMinute);
  if (ceiling !== null) events.push(...ceilingEvents(plan.ceiling, ceiling));
  const learned = budgetAfter(plan, budget, evidenceOfCeiling, settings);
  if (Math.floor(learned) !== Math.floor(budget))
    events.push({ event: 'live-budget.learned', budget: Math.floor(learned) });
  const call = {
    computed: live.answered,
    deferred: live.deferred,
    snapshotAsked: listed.asked,
    snapshotDeferred: listed.deferred,
  };
  const evidence = trial ? trialEvidence(plan, tried, { budget, callSkus }) : null;
  const incident = evidence === null ? null : incidentAfter(plan, evidence, callSkus);
  return {
    lesson: {
      call: showsLive ? call : null,
      budget: learned === budget ? null : learned,
      ceiling,
      ceilingStep: plan.ceiling.step,
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

/** Returns what a call showed of the ceiling on live computations. */
export function ceilingEvidence(
  { live, snapshot, askedAt, answeredAt, alike = false, proven = null }: CallEvidence,
  budget: number,
  { bulk }: Pick<SyncSettings, 'bulk'>,
): CeilingEvidence {
  return {
    askedAt,
    answeredAt,
    asked: live.asked,
    computed: live.answered,
    deferred: live.deferred,
    snapshotDeferred: snapshot.deferred,
    alike,
    proven,
    budget,
    configuredBudget: bulk.liveBudget,
  };
}

/**
 * Returns a log line if the ceiling was measured and differs from before, or no longer exists; a block says
 * nothing yet.
 */
export function ceilingEvents(before: LiveCeiling, after: LiveCeiling): SyncEvent[] {
  const isMeasured = before.blockedAt !== null && after.blockedAt === null && after.alike === 0;
  const isForgotten = before.perMinute !== null && after.perMinute === null;
  if (!isMeasured && !isForgotten) return [];
  return [
    {
      event: 'live-ceiling.learned',
      perMinute: after.perMinute === null ? null : Math.round(after.perMinute),
    },
  ];
}

/** Returns the budget after a call. What is deferred because of the known ceiling says nothing about it. */
function budgetAfter(
  plan: LivePlan,
  budget: number,
  call: CeilingEvidence,
  { bulk }: Pick<SyncSettings, 'bulk'>,
): number {
  if (plan.ceiling.perMinute !== null && meetsCeiling(call, plan)) return budget;
  const { asked: askedLive, deferred: deferredLive, snapshotDeferred: deferredOthers } = call;
  return learnLiveBudget(
    budget,
    { askedLive, deferredLive, deferredOthers, bestRecent: plan.best },
    { start: bulk.liveBudget, most: bulk.maxSkus },
  );
}

/**
 * Returns what a trial call's answers say for or against an incident; null: nothing. They speak against counts
 * only if more SKUs were answered than are computed live in any call, unless no call may have more. Deferrals are
 * weighed once the call is stored (`weighDeferrals`).
 */
function trialEvidence(
  { incident }: LivePlan,
  tried: AnswerCounts | undefined,
  { budget, callSkus }: { readonly budget: number; readonly callSkus: number },
): IncidentEvidence | null {
  if (tried === undefined) return null;
  if (incident?.because === 'live-count' && callSkus > budget && tried.answered <= budget) return null;
  return { kind: 'trial', asked: tried.asked, answered: tried.answered };
}

/** Returns an incident's cause before and after a piece of evidence; null if nothing changes. */
function incidentAfter(plan: LivePlan, evidence: IncidentEvidence, callSkus: number): Lesson['incident'] {
  const from = plan.incident?.because ?? null;
  const to = judgeIncident(from, evidence, { callSkus });
  return to === from ? null : { from, to };
}

function incidentMinutes({ incident, now }: LivePlan): number {
  return incident === null ? 0 : Math.round((now - incident.since) / 60_000);
}

/** What a bulk call showed of the partner's live budget (partner rule 4.1.3: five at present). */
export interface LiveObservation {
  /** SKUs in the call that the mirror counted as live, and how many of them were deferred. */
  readonly askedLive: number;
  readonly deferredLive: number;
  /** SKUs that were deferred although the mirror counted them as snapshot-priced. */
  readonly deferredOthers: number;
  /**
   * The most live SKUs that one call of the last minute had answered: proves the budget when a ceiling defers
   * SKUs.
   */
  readonly bestRecent?: number;
}

/** Growth for a clean call: quickly back to the configured budget, then a trial of one more every hundred calls. */
const RECOVERY = 0.1;
const CURIOSITY = 0.01;

/**
 * Returns the live budget of a call, as learned. A call's answered SKUs show what the budget contains, and full
 * calls without deferrals raise it. Calls that deferred SKUs taken for snapshot-priced teach nothing about it,
 * because these used the budget unseen.
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
