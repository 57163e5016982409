import { NO_CEILING } from '../../src/store/live/limits.ts';
import type { LivePlan } from '../../src/store/live/live.ts';
import { NO_RELEASES } from '../../src/sync/live/releases.ts';

/** A plan with no scarcity, no deferrals and no known ceiling. */
export const QUIET_PLAN: Omit<LivePlan, 'now'> = {
  refreshThreshold: null,
  maxIntervalMinutes: null,
  earlyMinutes: null,
  overdueMinutes: null,
  unsolved: false,
  incident: null,
  ceiling: NO_CEILING,
  creditFrom: 0,
  computedAt: null,
  computed: 0,
  computedRate: 0,
  best: 0,
  partlyDeferred: 0,
  othersDeferred: 0,
  lastDeferred: 0,
  releases: NO_RELEASES,
};
