/**
 * The state of the mirror, best to worst. healthy: prices are within their freshness targets and sync is running.
 * filling: the initial load is running. degraded: prices are older than their targets or soon will be, and the
 * mirror is working on it. paused: somebody has asked for no requests, so prices get older. broken: sync has
 * stopped and needs an operator.
 */
export const MIRROR_STATES = ['healthy', 'filling', 'degraded', 'paused', 'broken'] as const;
export type MirrorState = (typeof MIRROR_STATES)[number];
type Level = Exclude<MirrorState, 'healthy'>;

/** Every possible reason, by its stable code. */
export const REASON_CODES = [
  'postgres-unavailable',
  'queues-unavailable',
  'store-paused',
  'locked',
  'slow-statement',
  'snapshot-held',
  'paused',
  'clock',
  'queues-silent',
  'no-baseline',
  'task-missing',
  'stopped',
  'stalled',
  'delta-late',
  'delta-behind',
  'catalog-differs',
  'chain-broken',
  'refused',
  'own-credential',
  'catalog-stale',
  'incident',
  'live-outage',
  'live-deferred',
  'prices-lag',
  'mass-move',
  'manifest-refused',
  'delta-failing',
  'manifest-failing',
  'task-failing',
  'calls-failing',
  'skus-failing',
  'filling',
  'backlog-late',
  'empty',
  'watchlist-full',
  'scope-empty',
  'scope-differs',
  'not-stored',
] as const;
export type ReasonCode = (typeof REASON_CODES)[number];

export interface Reason {
  readonly code: ReasonCode;
  readonly level: Level;
  /** What is wrong, and after a semicolon what the reader can do. */
  readonly text: string;
  /** What the reader can do, with which the text ends; null if that is not separate. */
  readonly hint: string | null;
}

const reason =
  (level: Level) =>
  (code: ReasonCode, what: string, remedy: string): Reason => ({
    code,
    level,
    text: `${what}; ${remedy}`,
    hint: remedy,
  });
export const filling = reason('filling');
export const degraded = reason('degraded');
export const paused = reason('paused');
export const broken = reason('broken');

/** Returns the reasons that hold, of those that may. */
export const held = (reasons: readonly (Reason | false)[]): Reason[] =>
  reasons.filter((each) => each !== false);

/** Files of ops/runbooks by reason; without one, the reason's text says all there is. */
const RUNBOOKS: Readonly<Partial<Record<ReasonCode, string>>> = {
  'postgres-unavailable': 'stats-unavailable',
  'queues-unavailable': 'queues-away',
  'queues-silent': 'queues-away',
  'store-paused': 'store-paused',
  paused: 'paused',
  clock: 'needs-somebody',
  locked: 'backlog-stuck',
  'snapshot-held': 'snapshot-held',
  'no-baseline': 'manifest-failing',
  stopped: 'delta-stalled',
  stalled: 'backlog-stuck',
  'delta-late': 'delta-stalled',
  'delta-behind': 'delta-behind',
  'catalog-differs': 'catalog-differs',
  refused: 'throttled',
  'own-credential': 'needs-somebody',
  'catalog-stale': 'snapshot-old',
  incident: 'deferred-growing',
  'live-outage': 'deferred-growing',
  'live-deferred': 'deferred-growing',
  'prices-lag': 'prices-lag',
  'mass-move': 'mass-move',
  'manifest-refused': 'manifest-failing',
  'delta-failing': 'delta-stalled',
  'manifest-failing': 'manifest-failing',
  'task-failing': 'task-failing',
  'calls-failing': 'backlog-stuck',
  'skus-failing': 'needs-somebody',
  'backlog-late': 'freshness-burn',
  empty: 'nothing-actionable',
  'watchlist-full': 'needs-somebody',
  'scope-empty': 'nothing-actionable',
  'scope-differs': 'needs-somebody',
  'not-stored': 'needs-somebody',
};

/** Returns the file of the runbook for a reason, such as `throttled.md`; null if there is none. */
export function runbookOf({ code, level }: Reason): string | null {
  if (level === 'filling') return null;
  const name = code === 'refused' && level === 'broken' ? 'credential-rejected' : RUNBOOKS[code];
  return name === undefined ? null : `${name}.md`;
}
