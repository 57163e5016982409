import { ofSkus, read, since } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

/** Part of the priced SKUs that are fresh, by cohort; no sample for a cohort without priced SKUs. */
export const WITHIN_TARGET = `${read('fresh_skus', 'price_source')} / (sum by (price_source) (${read('skus{state="priced"}', 'state', 'price_source')}) > 0)`;

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
        'Part of the priced SKUs that are fresh: price no older than the target of its class, and no look owed. The dashed line is the objective, 95 %. Live SKUs cannot reach it where the looks do not suffice for LIVE_INTERVAL; `plan` tells what they can reach.',
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
        'Quantiles over all priced SKUs as they are now, estimated from buckets between a minute and 30 days.',
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
        'Age of the oldest price of each cohort. By default 24 h is the target of a snapshot-priced SKU.',
      unit: 's',
      queries: [{ expr: read('oldest_price_age_seconds', 'price_source'), legend: '{{price_source}}' }],
      width: 8,
    }),
    series({
      title: 'Error budget burn',
      description:
        'How fast the budget of 5 % not fresh is used: 1 = exactly used up over 30 days. Pages above 14.4 (1 h) and 6 (6 h), tickets above 3 (1 d) and 1 (3 d). This panel alone needs ops/prometheus/recording.yml; it has no samples while the mirror fills, nor for live SKUs while looks are too few.',
      unit: 'short',
      queries: ['1h', '6h', '1d', '3d'].map((window) => ({
        expr: `catalog_mirror:unfresh:burn${window}`,
        legend: `{{price_source}} ${window}`,
      })),
      width: 8,
      thresholds: [
        [1, 'yellow'],
        [6, 'orange'],
        [14.4, 'red'],
      ],
      noValue: 'the recording rules are not loaded, or the mirror fills',
      runbooks: ['freshness-burn'],
    }),
    series({
      title: 'Age of the metadata',
      description: 'Quantiles over all priced SKUs, and the oldest. By default 7 d is the greatest age.',
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
        'Time since a manifest was applied, since the snapshot was built, and since the delta was checked.',
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
