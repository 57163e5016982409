/** What one bulk call showed of the partner's live budget (specification 4.1 bulk rule 3: "currently 5"). */
export interface LiveObservation {
  /** SKUs in the call that the mirror counted as live, and how many of them were deferred. */
  readonly askedLive: number;
  readonly deferredLive: number;
  /** SKUs deferred that the mirror took for snapshot-priced. */
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
