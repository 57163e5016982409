import { expect, test } from 'vitest';
import { REASON_CODES, type ReasonCode } from '../../src/status/reason.ts';
import { ALERT_RULES } from './expressions.ts';

/** Reasons that no rule names, and the alerts that tell of them by what they do; null: one that ends by itself, or is no fault. */
const TOLD_BY: Partial<Record<ReasonCode, readonly string[] | null>> = {
  'postgres-unavailable': ['CatalogMirrorStatsUnavailable'],
  'store-paused': ['CatalogMirrorStorePaused'],
  // What waits for it is late or fails.
  locked: ['CatalogMirrorBacklogStuck', 'CatalogMirrorTaskFailing'],
  // It is waited for: prices that get too old by it burn.
  'slow-statement': ['CatalogMirrorFreshnessBurn'],
  paused: ['CatalogMirrorPaused'],
  'no-baseline': ['CatalogMirrorBroken', 'CatalogMirrorManifestFailing'],
  'task-missing': ['CatalogMirrorBroken'],
  stopped: ['CatalogMirrorBroken'],
  stalled: ['CatalogMirrorBacklogStuck'],
  'chain-broken': ['CatalogMirrorManifestFailing', 'CatalogMirrorRebaselineLoop'],
  refused: ['CatalogMirrorThrottled', 'CatalogMirrorCredentialRejected'],
  'catalog-stale': ['CatalogMirrorSnapshotOld'],
  // The partner's, who prices the whole catalog live; ended by trial calls.
  incident: null,
  'manifest-refused': ['CatalogMirrorManifestFailing'],
  'delta-failing': ['CatalogMirrorDeltaStalled'],
  'manifest-failing': ['CatalogMirrorManifestFailing'],
  'task-failing': ['CatalogMirrorTaskFailing'],
  'calls-failing': ['CatalogMirrorBacklogStuck'],
  filling: null,
  'backlog-late': ['CatalogMirrorFreshnessBurn'],
};

test('there is an alert for each reason that somebody is needed for', () => {
  const named = new Set(
    ALERT_RULES.flatMap(({ expr }) =>
      [...expr.matchAll(/state_reason\{code=~?"([^"]+)"\}/g)].flatMap(([, codes = '']) => codes.split('|')),
    ),
  );
  const told = Object.keys(TOLD_BY);
  expect([...named, ...told].toSorted()).toEqual([...REASON_CODES].toSorted());
  const alerts = new Set(ALERT_RULES.map(({ alert }) => alert));
  expect(Object.values(TOLD_BY).flatMap((by) => (by ?? []).filter((alert) => !alerts.has(alert)))).toEqual(
    [],
  );
});
