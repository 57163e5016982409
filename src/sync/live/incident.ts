import type { Incident, IncidentCause } from '../../store/live/limits.ts';
import type { SyncEvent } from '../events.ts';

/*
 * During an incident the partner prices the whole catalog live (partner rules 2.7: live_priced_sku_count equals
 * sku_count). A call then returns a few prices instead of a hundred, and the delta covers next to nothing. An
 * incident begins and ends only by evidence. Pure.
 */

export type IncidentEvidence =
  /** live_priced_sku_count and sku_count of the newest snapshot. */
  | { readonly kind: 'count'; readonly live: number; readonly skus: number }
  /** SKUs asked as snapshot-priced in recent calls that deferred any, and how many of them were deferred. */
  | { readonly kind: 'deferrals'; readonly asked: number; readonly deferred: number }
  /**
   * SKUs listed as snapshot-priced in a call of the incident that had more SKUs than are computed live, or as many
   * as a call may have, and how many of them were answered.
   */
  | TrialEvidence;

interface TrialEvidence {
  readonly kind: 'trial';
  readonly asked: number;
  readonly answered: number;
}

const ENTER_LIVE_PART = 0.9;
const LEAVE_LIVE_PART = 0.85;
/** An incident whose part stays between the two ends after this: a catalog that is always mostly live has none. */
const BETWEEN_MINUTES = 360;
/** Several calls, because a single one may have met a cluster of wrongly listed SKUs. */
const ENTER_ASKED = 300;
const ENTER_DEFERRED_PART = 0.5;
const LEAVE_ANSWERED_PART = 0.75;
/** Fewer show nothing, unless a call may not have more. */
const MIN_TRIED = 3;

const partLive = ({ live, skus }: { readonly live: number; readonly skus: number }): number =>
  skus > 0 ? live / skus : 0;

/** Returns whether no more SKUs count as live than usual. */
export const isUsualCount = (counts: { readonly live: number; readonly skus: number }): boolean =>
  partLive(counts) <= LEAVE_LIVE_PART;

/**
 * Returns how many SKUs are taken for live if `announced` are. Announced SKUs that the last file did not list as
 * live (`miscount`) are not believed. If the file listed more, `announced` stands, because the file may have been
 * another snapshot's.
 */
export const believedLive = (announced: number, miscount: number): number =>
  Math.max(0, announced - Math.max(0, miscount));

/**
 * Returns the cause of an incident after a piece of evidence; null: no incident. `minutes`: how long it has
 * lasted. Low counts end only what counts began, because they belong to a snapshot that may be hours old; a trial
 * call disproves either cause. High counts that a trial call has `disproved` begin no incident until they have
 * been low. Only SKUs that the catalog lists as snapshot-priced count in a trial call, because live ones are
 * deferred at any time. `callSkus`: how many SKUs a call may have.
 */
export function judgeIncident(
  present: IncidentCause | null,
  evidence: IncidentEvidence,
  {
    minutes = 0,
    disproved = false,
    callSkus = Infinity,
  }: { readonly minutes?: number; readonly disproved?: boolean; readonly callSkus?: number } = {},
): IncidentCause | null {
  switch (evidence.kind) {
    case 'count': {
      const part = partLive(evidence);
      if (part >= ENTER_LIVE_PART) return present === null && disproved ? null : 'live-count';
      const isOver = part <= LEAVE_LIVE_PART || minutes >= BETWEEN_MINUTES;
      return present === 'live-count' && isOver ? null : present;
    }
    case 'deferrals': {
      const { asked, deferred } = evidence;
      return (
        present ?? (asked >= ENTER_ASKED && deferred >= asked * ENTER_DEFERRED_PART ? 'deferrals' : null)
      );
    }
    case 'trial': {
      const { asked, answered } = evidence;
      const isOver = asked >= Math.min(MIN_TRIED, callSkus) && answered >= asked * LEAVE_ANSWERED_PART;
      return isOver ? null : present;
    }
  }
}

/**
 * The interval of trial calls while deferrals are the only evidence for an incident; the shortest one otherwise.
 */
const TRIAL_EVERY_MS = 600_000;
/** The interval while counts are the evidence, in catalog checks, so that counts can end the incident first. */
const TRIAL_CHECKS = 2;
/** SKUs in a trial call, in live budgets. */
export const TRIAL_BUDGETS = 4;

/**
 * Returns how many SKUs the next call asks for to test whether snapshot-priced SKUs are still computed live; null:
 * no trial now. An incident by counts is tested, too, because the manifest route may give no counts for days, or
 * wrong ones. If a call may have no more SKUs than are computed live, a full one is all that can be tried.
 */
export function trialSize(
  incident: Incident | null,
  now: number,
  { liveBudget, callSkus, catalogCheckMs }: TrialLimits,
): number | null {
  if (incident === null) return null;
  const everyMs =
    incident.because === 'deferrals'
      ? TRIAL_EVERY_MS
      : Math.max(TRIAL_EVERY_MS, TRIAL_CHECKS * catalogCheckMs);
  if (now - incident.triedAt < everyMs) return null;
  return Math.min(callSkus, Math.max(1, Math.floor(liveBudget)) * TRIAL_BUDGETS);
}

export interface TrialLimits {
  /** Live SKUs per call, as learned. */
  readonly liveBudget: number;
  readonly callSkus: number;
  /** How often the catalog's counts are asked for. */
  readonly catalogCheckMs: number;
}

/** Returns the event of an incident that began or ended; `minutes`: how long the state before it had lasted. */
export function incidentEvent(
  change: { readonly from: IncidentCause | null; readonly to: IncidentCause | null },
  minutes: number,
  evidence: IncidentEvidence,
): SyncEvent {
  return {
    event: change.to === null ? 'incident.ended' : 'incident.began',
    because: change.to ?? change.from,
    minutes,
    ...evidence,
  };
}
