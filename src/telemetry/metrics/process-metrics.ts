import { REQUEST_LANES, PACE_WAITS } from '../../pace/permit.ts';
import { kindsOf, ROUTES } from '../../partner/errors.ts';
import { REJECTIONS } from '../../partner/manifest-lines.ts';
import { jobOutcomes, QUEUES } from '../../queues/jobs.ts';
import { OBJECTIONS } from '../../store/connection/remedies.ts';
import { STORE_FAILURES } from '../../store/connection/sql-errors.ts';
import { PROMISE_OUTCOMES } from '../../store/sellers/promises.ts';
import { REFUSAL_HINTS } from '../../sync/manifest-decision.ts';
import { REBASELINE_CAUSES } from '../../sync/manifest.ts';
import { counter, each, histogram, only } from './declaration.ts';

/** From a cached answer to a manifest download. */
const REQUEST_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
/** A request waits up to 15 s for its permit before it is postponed, and as long behind others of its process. */
const WAIT_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60];
/** From the next call to a backlog of a day. */
const REPORT_BUCKETS = [2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 10_800, 21_600, 86_400];
const JOB_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800];

const JOB_ENDS = only(
  ['queue', 'outcome'],
  QUEUES.flatMap((queue) => jobOutcomes(queue).map((outcome) => ({ queue, outcome }))),
);
const REQUEST_ENDS = only(
  ['route', 'outcome'],
  ROUTES.flatMap((route) => ['ok', ...kindsOf(route)].map((outcome) => ({ route, outcome }))),
);
/** How a manifest or delta run can fail. A broken chain counts only if no manifest has repaired it. */
const RUN_ENDS = {
  manifest: [...kindsOf('manifest'), ...kindsOf('manifest-file'), ...Object.keys(REFUSAL_HINTS)],
  delta: kindsOf('delta'),
};
const SYNC_ENDS = only(
  ['kind', 'outcome'],
  Object.entries(RUN_ENDS).flatMap(([kind, outcomes]) =>
    [...new Set(['ok', ...outcomes, 'fault', ...STORE_FAILURES, ...OBJECTIONS])].map((outcome) => ({
      kind,
      outcome,
    })),
  ),
);

/** Metrics of what this process did since its start, incremented by events. Read them with `sum`. */
export const PROCESS_METRICS = {
  bulk_skus_total: counter({
    help: 'SKUs in bulk answers, by outcome.',
    labels: each({ outcome: ['resolved', 'not_found', 'deferred', 'error'] }),
    on: {
      'bulk.applied': ({ resolved, notFound, deferred, errors }) => [
        { labels: { outcome: 'resolved' }, value: resolved },
        { labels: { outcome: 'not_found' }, value: notFound },
        { labels: { outcome: 'deferred' }, value: deferred },
        { labels: { outcome: 'error' }, value: errors },
      ],
    },
  }),
  promise_cases_total: counter({
    help:
      "Promises of a price's age (catalog.watchlist.max_age) by what became of them: kept; hindered: late after a " +
      'back-off, a pause, a deferral, an error, or where the account cannot keep it; broken: late without any of ' +
      'these. One that comes n times as late counts n times.',
    labels: each({ outcome: PROMISE_OUTCOMES }),
    on: {
      'bulk.applied': ({ promises }) =>
        PROMISE_OUTCOMES.map((outcome) => ({ labels: { outcome }, value: promises[outcome] })),
    },
  }),
  bulk_answers_not_stored_total: counter({
    help: 'Bulk answers whose rows Postgres rejects: a constraint, a trigger or a limit. Their SKUs share smaller and smaller calls.',
    on: { 'bulk.failed': ({ because }) => Number(because === 'not-stored') },
  }),
  bulk_unaccounted_skus_total: counter({
    help: 'SKUs that a bulk answer omitted or listed with two outcomes (they stay due), or listed without being requested (ignored).',
    on: { 'bulk.applied': ({ omitted, contradictory, unexpected }) => omitted + contradictory + unexpected },
  }),
  price_changes_total: counter({
    help: 'Prices that changed, appeared or disappeared after the first observation.',
    on: { 'bulk.applied': ({ priceChanges }) => priceChanges },
  }),
  metadata_changes_total: counter({
    help: 'Metadata fields that changed.',
    on: { 'bulk.applied': ({ metadataChanges }) => metadataChanges },
  }),
  change_latency_seconds: histogram({
    help: "Time from a delta's last report of a SKU to the commit of its refresh.",
    buckets: REPORT_BUCKETS,
    on: { 'bulk.applied': ({ reportSeconds }) => reportSeconds.map((value) => ({ value })) },
  }),
  releases_total: counter({
    help: 'Lines (brand and model) of live SKUs that were suspected to move together, and those of which that was confirmed or dismissed.',
    labels: each({ outcome: ['suspected', 'confirmed', 'dismissed'] }),
    on: {
      'release.suspected': () => [{ labels: { outcome: 'suspected' }, value: 1 }],
      'release.confirmed': () => [{ labels: { outcome: 'confirmed' }, value: 1 }],
      'release.dismissed': () => [{ labels: { outcome: 'dismissed' }, value: 1 }],
    },
  }),
  release_refreshes_total: counter({
    help: 'Live refreshes that came early because their line moves, or was suspected to.',
    on: { 'release.suspected': ({ skus }) => Number(skus), 'release.confirmed': ({ skus }) => Number(skus) },
  }),
  unpriced_entries_total: counter({
    help: 'size_map entries whose price cannot be read, beside others that can.',
    on: { 'bulk.applied': ({ unpricedEntries }) => unpricedEntries },
  }),
  unreadable_records_total: counter({
    help: 'Unreadable entries of answers, by route: SKUs of a bulk answer stay due, those of a delta are skipped.',
    labels: each({ source: ['bulk', 'delta'] }),
    on: {
      'bulk.applied': ({ unreadable }) => [{ labels: { source: 'bulk' }, value: unreadable }],
      'delta.applied': ({ skipped }) => [{ labels: { source: 'delta' }, value: skipped }],
    },
  }),
  partner_requests_total: counter({
    help: 'Requests sent, by route and outcome (ok or the kind of error).',
    labels: REQUEST_ENDS,
    on: {
      'request.ended': ({ route, outcome }) => [{ labels: { route, outcome }, value: 1 }],
      'manifest.downloaded': ({ outcome }) => [{ labels: { route: 'manifest-file', outcome }, value: 1 }],
    },
  }),
  partner_request_duration_seconds: histogram({
    help: 'Time from sending a request to the end of its answer, by route.',
    labels: each({ route: ROUTES }),
    buckets: REQUEST_BUCKETS,
    on: {
      'request.ended': ({ route, ms }) => [{ labels: { route }, value: ms / 1000 }],
      'manifest.downloaded': ({ ms }) => [{ labels: { route: 'manifest-file' }, value: ms / 1000 }],
    },
  }),
  partner_request_wait_seconds: histogram({
    help: 'How long a request waited for the rate limit, by lane; postponed ones are in partner_request_put_offs_total.',
    labels: each({ lane: REQUEST_LANES }),
    buckets: WAIT_BUCKETS,
    on: {
      'request.waited': ({ lane, ms, putOff }) =>
        putOff === null ? [{ labels: { lane }, value: ms / 1000 }] : [],
    },
  }),
  partner_request_put_offs_total: counter({
    help: 'Requests that were postponed because the wait would have been too long, by lane and cause of the wait.',
    labels: each({ lane: REQUEST_LANES, because: PACE_WAITS }),
    on: {
      'request.waited': ({ lane, putOff }) =>
        putOff === null ? [] : [{ labels: { lane, because: putOff }, value: 1 }],
    },
  }),
  manifest_lines_total: counter({
    help: 'Manifest lines read, by outcome.',
    labels: each({ outcome: ['applied', 'rejected'] }),
    on: {
      'manifest.rejected-lines': ({ rejected }) => [{ labels: { outcome: 'rejected' }, value: rejected }],
      'task.ended': ({ task, outcome }) => {
        if (task !== 'manifest' || outcome.kind !== 'done') return [];
        const { lines, rejected } = outcome.counts;
        return [{ labels: { outcome: 'applied' }, value: Number(lines ?? 0) - Number(rejected ?? 0) }];
      },
    },
  }),
  manifest_rejected_lines_total: counter({
    help: 'Rejected manifest lines, by reason.',
    labels: each({ reason: REJECTIONS }),
    on: {
      'manifest.rejected-lines': ({ reasons }) =>
        Object.entries(reasons).map(([reason, value]) => ({ labels: { reason }, value })),
    },
  }),
  syncs_total: counter({
    help: 'Manifest and delta runs, by outcome.',
    labels: SYNC_ENDS,
    on: {
      'task.ended': ({ task: kind, outcome }) => {
        if ((kind !== 'manifest' && kind !== 'delta') || outcome.kind === 'postponed') return [];
        return [{ labels: { kind, outcome: outcome.kind === 'done' ? 'ok' : outcome.because }, value: 1 }];
      },
    },
  }),
  rebaselines_total: counter({
    help: 'Manifests applied, by cause.',
    labels: each({ because: REBASELINE_CAUSES }),
    on: {
      'task.ended': ({ task, outcome }) =>
        task === 'manifest' && outcome.kind === 'done'
          ? [{ labels: { because: String(outcome.counts['because']) }, value: 1 }]
          : [],
    },
  }),
  jobs_total: counter({
    help: 'Jobs completed, by queue and outcome.',
    labels: JOB_ENDS,
    on: { 'job.ended': ({ queue, outcome }) => [{ labels: { queue, outcome }, value: 1 }] },
  }),
  job_duration_seconds: histogram({
    help: 'Duration of a job, by queue and outcome.',
    labels: JOB_ENDS,
    buckets: JOB_BUCKETS,
    on: { 'job.ended': ({ queue, outcome, ms }) => [{ labels: { queue, outcome }, value: ms / 1000 }] },
  }),
};
