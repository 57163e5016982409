import { MIRROR_STATES, REASON_CODES } from '../../status/reason.ts';
import type { MirrorStats } from '../../status/status.ts';
import { STORE_FAILURES } from '../../store/connection/sql-errors.ts';
import type { IncidentCause } from '../../store/live/limits.ts';
import type { PRICE_SOURCES as SOURCES, SKU_STATES } from '../../store/schema/catalog.ts';
import { ages, allOf, each, gauge, ownGauge, storedCounter, unlisted } from './declaration.ts';
import { FOLLOWER_METRICS, HINT_METRICS, PROMISE_METRICS } from './seller-metrics.ts';

const STATES = allOf<(typeof SKU_STATES)[number]>({
  pending: true,
  priced: true,
  not_found: true,
  removed: true,
});
const PRICE_SOURCES = allOf<(typeof SOURCES)[number]>({ snapshot: true, live: true });
const INCIDENT_CAUSES = allOf<IncidentCause>({ 'live-count': true, deferrals: true });
const CATALOG_STATES = allOf<MirrorStats['catalogState']>({ ok: true, stale: true, none: true });
/** Reasons that are always shown, at 0 if nothing is due for them; others appear when they occur. */
const REASONS = ['new', 'changed', 'live', 'unlisted', 'missed', 'deferred', 'error', 'metadata', 'sweep'];

/** Converts a time to seconds since 1970; null if it is unknown. */
const seconds = (time: Date | null) => (time === null ? null : time.getTime() / 1000);
/** Returns 1 for the series of the value that holds; the others are 0. */
const is = <const L extends string>(label: L, value: string | null) =>
  value === null ? [] : [{ labels: { [label]: value } as Record<L, string>, value: 1 }];

/**
 * Metrics of the mirror, read at each scrape. All daemons show the same values, except in metrics of the daemon itself
 * (ownGauge). Read them with `max`.
 */
export const MIRROR_METRICS = {
  build_info: ownGauge({
    help: 'Always 1; the labels hold the versions and what the mirror is called (MIRROR_NAME).',
    labels: unlisted('version', 'node', 'mirror'),
    read: ({ version, mirror }) => [{ labels: { version, node: process.versions.node, mirror }, value: 1 }],
  }),
  mirror_stats_available: ownGauge({
    help: '1 when Postgres answered this scrape, 0 when it did not and the metrics read from the mirror are missing.',
    read: ({ stats }) => (stats === null ? 0 : 1),
  }),
  snapshot_generated_timestamp_seconds: gauge({
    help: 'Build time of the newest catalog snapshot that the manifest route has named.',
    read: (s) => seconds(s.snapshotGeneratedAt),
  }),
  manifest_applied_timestamp_seconds: gauge({
    help: 'Time at which a manifest was last applied.',
    read: (s) => seconds(s.manifestAppliedAt),
  }),
  delta_checked_timestamp_seconds: gauge({
    help: 'Time of the last successful delta poll.',
    read: (s) => seconds(s.deltaCheckedAt),
  }),
  catalog_state: gauge({
    help: 'State of the catalog (ok, stale or none): 1 for the current one, else 0.',
    labels: each({ state: CATALOG_STATES }),
    read: (s) => is('state', s.catalogState),
  }),
  catalog_counted_timestamp_seconds: gauge({
    help:
      'Time at which the catalog was last counted; skus, fresh_skus, due_skus, deferred_skus and all ages are as ' +
      'of then. Counting takes at most a twentieth of the time.',
    read: (s) => seconds(s.countedAt),
  }),
  skus: gauge({
    help: 'SKUs in the mirror, by state and price source.',
    labels: each({ state: STATES, price_source: [...PRICE_SOURCES, 'unknown'] }),
    read: (s) =>
      s.skus.map((row) => ({
        labels: { state: row.state, price_source: row.priceSource },
        value: row.count,
      })),
  }),
  fresh_skus: gauge({
    help: "SKUs whose price is within its cohort's target and that have no refresh pending.",
    labels: each({ price_source: PRICE_SOURCES }),
    read: (s) => s.freshSkus.map((row) => ({ labels: { price_source: row.priceSource }, value: row.count })),
  }),
  actionable_skus: gauge({
    help:
      'SKUs whose prices may be acted on: nothing speaks against them, and all of them are right with ' +
      'ACTIONABLE_CONFIDENCE at least (p_right).',
    labels: each({ price_source: PRICE_SOURCES }),
    read: (s) => s.trust.map((row) => ({ labels: { price_source: row.priceSource }, value: row.actionable })),
  }),
  expected_right_skus: gauge({
    help: 'SKUs whose prices are all right at present, as expected from p_right: its sum over the priced ones.',
    labels: each({ price_source: PRICE_SOURCES }),
    read: (s) =>
      s.trust.map((row) => ({ labels: { price_source: row.priceSource }, value: row.expectedRight })),
  }),
  price_age_seconds: ages({
    help: 'Current age of the prices of all priced SKUs, by price source. Counts may fall: do not use rate().',
    labels: each({ price_source: PRICE_SOURCES }),
    ages: (s) => s.priceAge.map((row) => ({ labels: { price_source: row.priceSource }, ages: row.ages })),
  }),
  oldest_price_age_seconds: gauge({
    help: 'Age of the oldest price, by price source.',
    labels: each({ price_source: PRICE_SOURCES }),
    read: (s) =>
      s.priceAge.map((row) => ({ labels: { price_source: row.priceSource }, value: row.oldestSeconds })),
  }),
  price_age_target_seconds: gauge({
    help: 'Age within which a price counts as fresh, by price source (LIVE_INTERVAL, SWEEP_INTERVAL): fresh_skus goes by it.',
    labels: each({ price_source: PRICE_SOURCES }),
    read: ({ targets }) => [
      { labels: { price_source: 'snapshot' }, value: targets.snapshotSeconds },
      { labels: { price_source: 'live' }, value: targets.liveSeconds },
    ],
  }),
  metadata_age_seconds: ages({
    help: 'Current age of the metadata of all priced SKUs. Counts may fall: do not use rate().',
    ages: (s) => [{ ages: s.metadataAge }],
  }),
  oldest_metadata_age_seconds: gauge({
    help: 'Age of the oldest metadata.',
    read: (s) => s.oldestMetadataAgeSeconds,
  }),
  due_skus: gauge({
    help: 'SKUs due for a refresh now, by reason.',
    labels: each({ reason: REASONS }),
    read: (s) => s.due.map((row) => ({ labels: { reason: row.reason }, value: row.count })),
  }),
  oldest_due_age_seconds: gauge({
    help: 'How long the longest-waiting SKU has been due, by reason.',
    labels: each({ reason: REASONS }),
    read: (s) => s.due.map((row) => ({ labels: { reason: row.reason }, value: row.oldestAgeSeconds })),
  }),
  deferred_skus: gauge({
    help: 'SKUs that the partner deferred, waiting or due again.',
    read: (s) => s.deferredSkus,
  }),
  oldest_deferred_age_seconds: gauge({
    help: 'Age of the oldest deferral that is still open.',
    read: (s) => s.oldestDeferredAgeSeconds,
  }),
  delta_reports_total: storedCounter({
    help: 'Delta reports of snapshot-priced SKUs by the result of their refresh: confirmed = a price changed, unchanged = none did.',
    labels: each({ outcome: ['confirmed', 'unchanged'] }),
    read: ({ deltaAudit: audit }) => [
      { labels: { outcome: 'confirmed' }, value: audit.reportsConfirmed },
      { labels: { outcome: 'unchanged' }, value: audit.reportsUnchanged },
    ],
  }),
  moves_seen_first_total: storedCounter({
    help: 'Price changes that a refresh found before the delta reported them: reported = later, never = not at all.',
    labels: each({ reported: ['later', 'never'] }),
    read: ({ deltaAudit: audit }) => [
      { labels: { reported: 'later' }, value: audit.movesSeenFirst },
      { labels: { reported: 'never' }, value: audit.movesNeverReported },
    ],
  }),
  moves_seen_first_seconds_total: storedCounter({
    help: 'Total time by which refreshes found price changes before the delta reported them.',
    read: (s) => s.deltaAudit.seenFirstSeconds,
  }),
  unreported_moves: gauge({
    help: 'SKUs whose refresh found a price change that no delta has reported so far.',
    read: (s) => s.deltaAudit.movesWaiting,
  }),
  doubted_skus: gauge({
    help:
      'SKUs whose prices are not actionable before a second answer: implausible = hardly prices, or suddenly ' +
      'none, mass-move = moved while many did. Of more than 1,000 as of catalog_counted_timestamp_seconds.',
    labels: each({ doubt: ['implausible', 'mass-move'] }),
    read: ({ doubted }) => Object.entries(doubted).map(([doubt, value]) => ({ labels: { doubt }, value })),
  }),
  calibration_looks: gauge({
    help: 'Answered refreshes of the last seven days, each a test of p_right, by cohort (catalog.calibration).',
    labels: unlisted('cohort'),
    read: (s) => s.calibration.map(({ cohort, looks }) => ({ labels: { cohort }, value: looks })),
  }),
  calibration_right_ratio: gauge({
    help: 'Part of these refreshes that found the price as it was held, by cohort.',
    labels: unlisted('cohort'),
    read: (s) => s.calibration.map(({ cohort, rightShare }) => ({ labels: { cohort }, value: rightShare })),
  }),
  calibration_claimed_ratio: gauge({
    help: 'Mean of p_right before these refreshes, by cohort: what calibration_right_ratio was claimed to be.',
    labels: unlisted('cohort'),
    read: (s) =>
      s.calibration.map(({ cohort, claimedShare }) => ({ labels: { cohort }, value: claimedShare })),
  }),
  calibration_error_ratio: gauge({
    help: 'Mean distance between what was claimed and what was found, over the tenths of p_right, by cohort.',
    labels: unlisted('cohort'),
    read: (s) => s.calibration.map(({ cohort, error }) => ({ labels: { cohort }, value: error })),
  }),
  ...HINT_METRICS,
  sql_refreshes_total: storedCounter({
    help: 'SKUs that were asked for from SQL (catalog.refresh, catalog.refresh_now).',
    read: (s) => s.refreshes.asked,
  }),
  sql_refreshes_refused_total: storedCounter({
    help: 'Calls of catalog.refresh and catalog.refresh_now that were above their bounds (SQLSTATE CM004).',
    read: (s) => s.refreshes.refused,
  }),
  ...PROMISE_METRICS,
  ...FOLLOWER_METRICS,
  live_budget_per_call: gauge({
    help: 'Live SKUs currently put into one bulk call.',
    read: (s) => s.liveBudgetPerCall,
  }),
  live_computations_last_minute: gauge({
    help: 'Prices that the partner computed live for the mirror in the last minute.',
    read: (s) => s.live.computedPerMinute,
  }),
  live_ceiling_per_minute: gauge({
    help: "The partner's ceiling on live computations, as learned; no series while none was reached.",
    read: (s) => s.live.ceilingPerMinute,
  }),
  live_longest_wait_seconds: gauge({
    help:
      'Longest planned interval between two refreshes of a live SKU while the budget is too small for ' +
      'LIVE_INTERVAL; no series otherwise.',
    read: (s) => s.live.longestWaitSeconds,
  }),
  incident: gauge({
    help: '1 while the whole catalog is treated as live-priced, by the evidence for it, else 0.',
    labels: each({ because: INCIDENT_CAUSES }),
    read: (s) => is('because', s.incident?.because ?? null),
  }),
  state: ownGauge({
    help: 'State of the mirror (healthy, filling, degraded, paused or broken) as this daemon judges it: 1 for the current one, else 0.',
    labels: each({ state: MIRROR_STATES }),
    read: ({ health }) => is('state', health?.state ?? null),
  }),
  state_reason: ownGauge({
    help: 'Reasons for the state, by code: 1 if the reason applies, else 0.',
    labels: each({ code: REASON_CODES }),
    // Two reasons may share a code, and Prometheus rejects a scrape that contains a series twice.
    read: ({ health }) =>
      [...new Set(health?.reasons.map(({ code }) => code))].map((code) => ({ labels: { code }, value: 1 })),
  }),
  store_paused: ownGauge({
    help: '1 while this daemon pauses jobs because Postgres rejects writes, by cause; else 0.',
    labels: each({ because: STORE_FAILURES }),
    read: ({ storeFailure }) => is('because', storeFailure),
  }),
  task_last_success_timestamp_seconds: gauge({
    help:
      'Time of the last success of a task, in any daemon; no series before the first. For reprice: the last ' +
      'applied bulk answer, accurate to five seconds.',
    labels: unlisted('task'),
    read: ({ tasks }) =>
      tasks.map(({ task, succeededAt }) => ({ labels: { task }, value: seconds(succeededAt) })),
  }),
  task_failures: gauge({
    help: 'Consecutive failures of a task, in any daemon; 0 after a success.',
    labels: unlisted('task'),
    read: ({ tasks }) => tasks.map(({ task, failures }) => ({ labels: { task }, value: failures })),
  }),
  request_ceiling_per_minute: gauge({
    help: 'Requests per minute that the mirror currently allows itself.',
    read: (s) => s.pace.ceilingPerMinute,
  }),
  requests_in_window: gauge({
    help: "The mirror's requests in the current rolling window, of all daemons on this database.",
    read: (s) => s.pace.usedInWindow,
  }),
  other_requests_in_window: gauge({
    help: "Requests of the account's other services in the current rolling window, as taken through catalog.take_request.",
    read: (s) => s.pace.othersInWindow,
  }),
  requests_in_window_limit: gauge({
    help: "Maximum requests in a rolling window: the account's limit, and the mirror's current part of it beside the other services.",
    labels: each({ of: ['account', 'mirror'] }),
    read: ({ pace }) => [
      { labels: { of: 'account' }, value: pace.limitInWindow },
      { labels: { of: 'mirror' }, value: pace.mostInWindow },
    ],
  }),
  paused: gauge({
    help: '1 while `catalog-mirror pause` keeps all requests back, else 0.',
    read: (s) => (s.pace.paused === null ? 0 : 1),
  }),
  paused_since_timestamp_seconds: gauge({
    help: 'Time from which requests are paused; no series while they are not.',
    read: (s) => seconds(s.pace.paused?.since ?? null),
  }),
  paused_until_timestamp_seconds: gauge({
    help: 'Time at which the pause ends by itself; no series while requests are not paused, or are until `catalog-mirror resume`.',
    read: (s) => seconds(s.pace.paused?.until ?? null),
  }),
  backing_off: gauge({
    help: '1 while a rejected request makes all daemons back off, else 0.',
    read: (s, { now }) => ((s.pace.backingOffUntil?.getTime() ?? 0) > now ? 1 : 0),
  }),
  refusals: gauge({
    help: "Consecutive rejected requests (403, 401, the authorizer's 500); 0 while requests succeed.",
    read: (s) => s.pace.refused?.times ?? 0,
  }),
  refused_since_timestamp_seconds: gauge({
    help: 'Time of the first of the consecutive rejected requests; no series while requests succeed.',
    read: (s) => seconds(s.pace.refused?.since ?? null),
  }),
  credential_suspected: gauge({
    help:
      '1 while requests are rejected although the mirror sent no others in the window, else 0: the credential is ' +
      'wrong, or other traffic constantly fills the limit.',
    read: (s) => (s.pace.refused?.suspected === 'credential' ? 1 : 0),
  }),
};
