import { read } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const deferred: Row = {
  title: 'Deferred backlog and live computations',
  panels: [
    series({
      title: 'Deferred SKUs',
      description:
        'SKUs that the partner deferred, waiting or due again. More than 1 % of the mirror is too many.',
      unit: 'short',
      queries: [{ expr: read('deferred_skus'), legend: 'deferred' }],
      width: 6,
      runbooks: ['deferred-growing'],
    }),
    series({
      title: 'Oldest deferral',
      description: 'Age of the oldest deferral that is still open. The dashed line is an hour.',
      unit: 's',
      queries: [{ expr: read('oldest_deferred_age_seconds'), legend: 'oldest' }],
      width: 6,
      thresholds: [[3600, 'red']],
      runbooks: ['deferred-growing'],
    }),
    series({
      title: 'Live computations',
      description:
        "Prices that the partner computed live for the mirror in the last minute, and the partner's ceiling as learned (no line while none was reached).",
      unit: 'short',
      queries: [
        { expr: read('live_computations_last_minute'), legend: 'computed' },
        { expr: read('live_ceiling_per_minute'), legend: 'ceiling' },
        { expr: read('live_budget_per_call'), legend: 'budget of one call' },
      ],
      width: 6,
    }),
    series({
      title: 'Budget too small, incident',
      description:
        'Longest planned interval between two refreshes of a live SKU; no line while the budget is enough for LIVE_INTERVAL. An incident, during which the whole catalog is live-priced, is marked in all panels.',
      unit: 's',
      queries: [{ expr: read('live_longest_wait_seconds'), legend: 'longest planned wait' }],
      width: 6,
      noValue: 'budget is enough',
    }),
  ],
};
