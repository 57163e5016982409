import { read, since, where } from '../expressions.ts';
import { type Row, stat } from '../panels.ts';
import { WITHIN_TARGET } from './freshness.ts';

export const trust: Row = {
  title: 'Can I trust the prices now?',
  panels: [
    stat({
      title: 'Within target',
      description:
        'Share of the priced SKUs whose price is within the target of their cohort and that have no refresh pending. The objective is 95 %.',
      unit: 'percentunit',
      queries: [{ expr: WITHIN_TARGET, legend: '{{price_source}}' }],
      width: 4,
      base: 'red',
      thresholds: [
        [0.7, 'orange'],
        [0.95, 'green'],
      ],
      noValue: 'no price yet',
      runbooks: ['freshness-burn'],
    }),
    stat({
      title: 'Oldest unpriced change',
      description:
        'How long the oldest reported change has been waiting for its price; 0 if there is none. Changes that the partner deferred count under "deferred" below.',
      unit: 's',
      queries: [{ expr: read(where('oldest_due_age_seconds', { reason: 'changed' })), legend: 'changed' }],
      width: 4,
      thresholds: [
        [300, 'orange'],
        [1800, 'red'],
      ],
      runbooks: ['backlog-stuck'],
    }),
    stat({
      title: 'State',
      description:
        'healthy; filling: initial load; degraded: prices miss their targets or soon will; paused: somebody has asked for no requests; broken: sync has stopped. The status page lists the reasons. If daemons differ, all their states are shown.',
      unit: 'short',
      queries: [{ expr: `${read('state', 'state')} == 1`, legend: '{{state}}' }],
      width: 4,
      names: {
        healthy: 'green',
        filling: 'blue',
        degraded: 'orange',
        paused: 'purple',
        broken: 'red',
      },
      noValue: 'not known',
      runbooks: [
        'broken',
        'nothing-actionable',
        'needs-somebody',
        'queues-away',
        'paused',
        'stats-unavailable',
        'store-paused',
        'snapshot-held',
        'job-mixed',
      ],
    }),
    stat({
      title: 'Catalog',
      description:
        'stale: the partner currently reports no changes, and SKUs are refreshed by age instead. none: there is no baseline yet.',
      unit: 'short',
      queries: [{ expr: `${read('catalog_state', 'state')} == 1`, legend: '{{state}}' }],
      width: 3,
      names: { ok: 'green', stale: 'red', none: 'blue' },
      noValue: 'not known',
      runbooks: ['snapshot-old', 'delta-behind', 'catalog-differs', 'prices-lag'],
    }),
    stat({
      title: 'Delta last checked',
      description:
        'Time since the last successful delta poll; changes reported since then are not known here.',
      unit: 's',
      queries: [{ expr: since('delta_checked_timestamp_seconds'), legend: 'ago' }],
      width: 3,
      thresholds: [
        [900, 'orange'],
        [1800, 'red'],
      ],
      noValue: 'never',
      runbooks: ['delta-stalled'],
    }),
    stat({
      title: 'Snapshot built',
      description:
        'Age of the newest snapshot that the manifest route has named; the mirror may still follow another one. A new one is built every six hours.',
      unit: 's',
      queries: [{ expr: since('snapshot_generated_timestamp_seconds'), legend: 'ago' }],
      width: 3,
      thresholds: [
        [43_200, 'orange'],
        [64_800, 'red'],
      ],
      noValue: 'not known',
      runbooks: ['snapshot-old'],
    }),
    stat({
      title: 'Counted',
      description:
        'Time since the catalog was counted; numbers of SKUs and ages on this dashboard are as of then. Counting takes at most a twentieth of the time, so it is done less often.',
      unit: 's',
      queries: [{ expr: since('catalog_counted_timestamp_seconds'), legend: 'ago' }],
      width: 3,
      thresholds: [
        [300, 'orange'],
        [1800, 'red'],
      ],
      noValue: 'never',
      runbooks: ['counts-old'],
    }),
  ],
};
