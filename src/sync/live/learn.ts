import type { Lesson } from '../../store/call/call-lesson.ts';
import type { LiveCeiling } from '../../store/live/limits.ts';
import type { LivePlan } from '../../store/live/live.ts';
import type { SyncEvent } from '../events.ts';
import type { SyncSettings } from '../settings.ts';
import { type CeilingEvidence, learnLiveCeiling, meetsCeiling } from './ceiling.ts';
import { type IncidentEvidence, incidentEvent, judgeIncident } from './incident.ts';

/*
 * What a bulk call teaches: the live budget of a call, the ceiling on live computations in time (ceiling.ts), and
 * whether an incident has begun or is over. What answers teach of a single SKU's rate is learned when they are applied
 * (learn-refresh.ts). Pure.
 */

/** State at the time a call was planned. */
export interface CallContext {
  readonly plan: LivePlan;
  /** Live SKUs a call, as learned or else as configured. */
  readonly budget: number;
  /** Whether the call tests if an incident is over. */
  readonly trial: boolean;
  /** SKUs that a call may have at present. */
  readonly callSkus: number;
}

/** What a call showed of the SKUs that counted as live, or of those that did not, when they were claimed. */
export interface AnswerCounts {
  readonly asked: number;
  /** With a record or as not found. */
  readonly answered: number;
  readonly deferred: number;
}

export interface CallEvidence {
  /** Without those of whose deferral nothing is learned (again.ts). */
  readonly live: AnswerCounts;
  readonly snapshot: AnswerCounts;
  /** Of a trial call: those that the catalog lists as snapshot-priced, however they count. */
  readonly tried?: AnswerCounts;
  /**
   * Those of `snapshot` that the catalog lists so, where others were asked with them: a SKU that nobody lists may
   * always be computed live.
   */
  readonly listed?: AnswerCounts;
  /** Whether live SKUs that were deferred are deferred again no more often than others (again.ts). */
  readonly alike?: boolean;
  /**
   * What was computed in a minute before the ceiling was lowered for SKUs that are deferred for reasons of their own;
   * null: nothing of the kind.
   */
  readonly proven?: number | null;
  /** When it was claimed and when its answer was there, in epoch milliseconds of the database's clock. */
  readonly askedAt: number;
  readonly answeredAt: number;
}

export interface CallLesson {
  readonly lesson: Lesson;
  readonly events: readonly SyncEvent[];
  /** Emitted only if the lesson's incident was stored. */
  readonly incidentEvent: SyncEvent | null;
}

/** All that an answered call teaches under `settings`: what to store, and the events to emit. */
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

/** What a call showed of the ceiling on live computations. */
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
 * A log line where the ceiling was measured anew and differs from before, or is none any more; a block says nothing
 * yet.
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

/** The budget after a call. What is deferred for the known ceiling says nothing of it. */
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
 * What a trial call's answers say for or against an incident; null: nothing. Against counts they say something only if
 * more SKUs were answered than are computed live in any call, unless no call may have more. Deferrals are weighed once
 * the call is stored (`weighDeferrals`).
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

/** An incident's cause before and after a piece of evidence; null where nothing changes. */
function incidentAfter(plan: LivePlan, evidence: IncidentEvidence, callSkus: number): Lesson['incident'] {
  const from = plan.incident?.because ?? null;
  const to = judgeIncident(from, evidence, { callSkus });
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
 * The live budget of a call, learned. A call's answered SKUs show what the budget holds, and full calls without
 * deferral raise it. Calls that deferred SKUs taken for snapshot-priced teach nothing of it, because these used the
 * budget unseen.
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
