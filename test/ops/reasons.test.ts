import { expect, test } from 'vitest';
import { REASON_CODES, type ReasonCode } from '../../src/status/reason.ts';
import { ALERT_RULES } from './expressions.ts';

/** Reasons that no rule names, with the alerts for their effects; null: one that ends by itself, or is no fault. */
const TOLD_BY: Partial<Record<ReasonCode, readonly string[] | null>> = {
  'postgres-unavailable': ['CatalogMirrorStatsUnavailable'],
  'store-paused': ['CatalogMirrorStorePaused'],
  // What waits for the lock is late or fails.
  locked: ['CatalogMirrorBacklogStuck', 'CatalogMirrorTaskFailing'],
  // It is waited for, and prices that get too old burn the error budget.
  'slow-statement': ['CatalogMirrorFreshnessBurn'],
  paused: ['CatalogMirrorPaused'],
  'no-baseline': ['CatalogMirrorBroken', 'CatalogMirrorManifestFailing'],
  'task-missing': ['CatalogMirrorBroken'],
  stopped: ['CatalogMirrorBroken'],
  stalled: ['CatalogMirrorBacklogStuck'],
  'chain-broken': ['CatalogMirrorManifestFailing', 'CatalogMirrorRebaselineLoop'],
  refused: ['CatalogMirrorThrottled', 'CatalogMirrorCredentialRejected'],
  'catalog-stale': ['CatalogMirrorSnapshotOld'],
  // It is the partner that prices the whole catalog live; trial calls end it.
  incident: null,
  'manifest-refused': ['CatalogMirrorManifestFailing'],
  'delta-failing': ['CatalogMirrorDeltaStalled'],
  'manifest-failing': ['CatalogMirrorManifestFailing'],
  'task-failing': ['CatalogMirrorTaskFailing'],
  'calls-failing': ['CatalogMirrorBacklogStuck'],
  filling: null,
  'backlog-late': ['CatalogMirrorFreshnessBurn'],
};

test('every reason that needs an operator has an alert', () => {
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
