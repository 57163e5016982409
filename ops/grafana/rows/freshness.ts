import { ofSkus, read, recorded, since, where } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

/** Part of the priced SKUs that are fresh, by cohort; no sample for a cohort without priced SKUs. */
export const WITHIN_TARGET = `${read('fresh_skus', 'price_source')} / (sum by (price_source) (${read(where('skus', { state: 'priced' }), 'state', 'price_source')}) > 0)`;

const QUANTILES = [
  [0.5, 'median'],
  [0.9, '90 %'],
  [0.99, '99 %'],
] as const;

export const freshness: Row = {
  title: 'Freshness by cohort',
  panels: [
    series({
      title: 'SKUs within target',
      description:
        'Share of the priced SKUs that are fresh: the price is within the target of its cohort, and no refresh is pending. The dashed line is the objective, 95 %. Live SKUs cannot reach it if the budget is too small for LIVE_INTERVAL; `plan` tells what they can reach.',
      unit: 'percentunit',
      queries: [{ expr: WITHIN_TARGET, legend: '{{price_source}}' }],
      width: 8,
      max: 1,
      base: 'red',
      thresholds: [[0.95, 'green']],
      runbooks: ['freshness-burn'],
    }),
    series({
      title: 'Age of the prices',
      description:
        'Quantiles over all priced SKUs at present, estimated from buckets between a minute and 30 days.',
      unit: 's',
      queries: QUANTILES.map(([q, name]) => ({
        expr: ofSkus(q, 'price_age_seconds', ['price_source']),
        legend: `{{price_source}} ${name}`,
      })),
      width: 8,
    }),
    series({
      title: 'Oldest price',
      description:
        'Age of the oldest price of each cohort, and the target within which its prices count as fresh.',
      unit: 's',
      queries: [
        { expr: read('oldest_price_age_seconds', 'price_source'), legend: '{{price_source}}' },
        { expr: read('price_age_target_seconds', 'price_source'), legend: '{{price_source}} target' },
      ],
      width: 8,
    }),
    series({
      title: 'Error budget burn',
      description:
        'How fast the budget of 5 % not fresh is used up: 1 = exactly within 30 days. Pages above 14.4 (1 h) and 6 (6 h), tickets above 3 (1 d) and 1 (3 d). Only this panel needs ops/prometheus/recording.yml; it has no samples during the initial load, nor for live SKUs while the budget is too small.',
      unit: 'short',
      queries: ['1h', '6h', '1d', '3d'].map((window) => ({
        expr: recorded(`catalog_mirror:unfresh:burn${window}`),
        legend: `{{price_source}} ${window}`,
      })),
      width: 8,
      thresholds: [
        [1, 'yellow'],
        [6, 'orange'],
        [14.4, 'red'],
      ],
      noValue: 'the recording rules are not loaded, or the initial load is running',
      runbooks: ['freshness-burn'],
    }),
    series({
      title: 'Age of the metadata',
      description: 'Quantiles over all priced SKUs, and the oldest. The default maximum is 7 d.',
      unit: 's',
      queries: [
        { expr: ofSkus(0.5, 'metadata_age_seconds'), legend: 'median' },
        { expr: ofSkus(0.99, 'metadata_age_seconds'), legend: '99 %' },
        { expr: read('oldest_metadata_age_seconds'), legend: 'oldest' },
      ],
      width: 8,
    }),
    series({
      title: 'Baseline, snapshot and delta',
      description:
        'Time since the last applied manifest, the build of the catalog snapshot, and the last delta check.',
      unit: 's',
      queries: [
        { expr: since('manifest_applied_timestamp_seconds'), legend: 'manifest applied' },
        { expr: since('snapshot_generated_timestamp_seconds'), legend: 'snapshot built' },
        { expr: since('delta_checked_timestamp_seconds'), legend: 'delta checked' },
      ],
      width: 8,
      runbooks: ['delta-stalled', 'snapshot-old'],
    }),
  ],
};
