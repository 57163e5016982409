import type { Reason, ReasonCode } from './reason.ts';

/** Files of ops/runbooks by the reason that they are about; without one, the reason's text says all there is. */
const RUNBOOKS: Readonly<Partial<Record<ReasonCode, string>>> = {
  'postgres-unavailable': 'stats-unavailable',
  'store-paused': 'store-paused',
  paused: 'paused',
  locked: 'backlog-stuck',
  'no-baseline': 'manifest-failing',
  stopped: 'delta-stalled',
  stalled: 'backlog-stuck',
  'delta-late': 'delta-stalled',
  'delta-behind': 'delta-behind',
  'catalog-differs': 'catalog-differs',
  refused: 'throttled',
  'own-credential': 'credential-rejected',
  'catalog-stale': 'snapshot-old',
  incident: 'deferred-growing',
  'live-outage': 'deferred-growing',
  'live-deferred': 'deferred-growing',
  'mass-move': 'mass-move',
  'manifest-refused': 'manifest-failing',
  'delta-failing': 'delta-stalled',
  'manifest-failing': 'manifest-failing',
  'task-failing': 'task-failing',
  'calls-failing': 'backlog-stuck',
  'backlog-late': 'freshness-burn',
};

/** The file of the runbook for a reason, such as `throttled.md`; null where there is none. */
export function runbookOf({ code, level }: Reason): string | null {
  if (level === 'filling') return null;
  const name = code === 'refused' && level === 'broken' ? 'credential-rejected' : RUNBOOKS[code];
  return name === undefined ? null : `${name}.md`;
}
