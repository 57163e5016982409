import { countIn, measured, perMinute, read, readIncrease } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const reports: Row = {
  title: 'From report to commit, and how far the delta can be trusted',
  panels: [
    series({
      title: 'Reported → committed',
      description:
        "From a delta's last report of a SKU to the commit of the answer that it asked for, over the last hour. No line where nothing was reported.",
      unit: 's',
      queries: [
        { expr: measured(0.5, 'change_latency_seconds', '1h'), legend: 'median' },
        { expr: measured(0.9, 'change_latency_seconds', '1h'), legend: '90 %' },
        { expr: measured(0.99, 'change_latency_seconds', '1h'), legend: '99 %' },
      ],
      width: 8,
      noValue: 'nothing was reported',
      runbooks: ['freshness-burn'],
    }),
    series({
      title: 'Changes found',
      description:
        'Prices that changed, appeared or went, and metadata fields that changed, by any kind of look.',
      unit: 'cpm',
      queries: [
        { expr: perMinute('price_changes_total'), legend: 'prices' },
        { expr: perMinute('metadata_changes_total'), legend: 'metadata fields' },
      ],
      width: 8,
    }),
    series({
      title: 'Reported changes answered in an hour',
      description: 'Changes whose answer was committed in the last hour.',
      unit: 'short',
      queries: [{ expr: countIn('change_latency_seconds_count', '1h'), legend: 'answered' }],
      width: 8,
    }),
    series({
      title: 'What reports were worth, in an hour',
      description:
        'Reports of snapshot-priced SKUs by what the look found: confirmed = a price moved, unchanged = none did.',
      unit: 'short',
      queries: [{ expr: readIncrease('delta_reports_total', '1h', 'outcome'), legend: '{{outcome}}' }],
      width: 8,
    }),
    series({
      title: 'Moves that a look found first, in a day',
      description:
        'Price moves that the mirror saw before the delta reported them: reported later, or never. Waiting ones are not judged yet.',
      unit: 'short',
      queries: [
        { expr: readIncrease('moves_seen_first_total', '1d', 'reported'), legend: 'reported {{reported}}' },
        { expr: read('unreported_moves'), legend: 'waiting' },
      ],
      width: 8,
    }),
    series({
      title: 'How much earlier',
      description:
        'Mean time by which moves seen first were seen before their report, over a day. No line without such moves.',
      unit: 's',
      queries: [
        {
          expr: `${readIncrease('moves_seen_first_seconds_total', '1d')} / (${readIncrease('moves_seen_first_total{reported="later"}', '1d')} > 0)`,
          legend: 'mean',
        },
      ],
      width: 8,
      noValue: 'none in a day',
    }),
  ],
};
