import { countIn, measured, observedIn, perMinute, read, readIncrease, where } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const reports: Row = {
  title: 'From report to commit, and how reliable the delta is',
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
        'Prices that changed, appeared or disappeared, and metadata fields that changed, in any refresh.',
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
      queries: [{ expr: observedIn('change_latency_seconds', '1h'), legend: 'answered' }],
      width: 8,
    }),
    series({
      title: 'Reports confirmed by a price change, in an hour',
      description:
        'Reports of snapshot-priced SKUs by the result of their refresh: confirmed = a price changed, unchanged = none did.',
      unit: 'short',
      queries: [{ expr: readIncrease('delta_reports_total', '1h', 'outcome'), legend: '{{outcome}}' }],
      width: 8,
    }),
    series({
      title: 'Changes that a refresh found first, in a day',
      description:
        'Price changes that the mirror found before the delta reported them: reported later, or never. Waiting ones are undecided.',
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
        'Mean time from finding a change to its report by the delta, over a day. No line without such changes.',
      unit: 's',
      queries: [
        {
          expr: `${readIncrease('moves_seen_first_seconds_total', '1d')} / (${readIncrease(where('moves_seen_first_total', { reported: 'later' }), '1d')} > 0)`,
          legend: 'mean',
        },
      ],
      width: 8,
      noValue: 'none in a day',
    }),
    series({
      title: 'Promises of ages, in an hour',
      description:
        'Refreshes of SKUs with catalog.watchlist.max_age: kept, hindered by a back-off, a pause, a deferral, an error or too many promises, or broken without any of these.',
      unit: 'short',
      queries: [{ expr: countIn('promise_cases_total', '1h', ['outcome']), legend: '{{outcome}}' }],
      width: 8,
      runbooks: ['promises-broken'],
    }),
    series({
      title: 'Promises kept in a day',
      description: 'Part of the promises of the last day that were kept, whatever hindered the others.',
      unit: 'percentunit',
      queries: [{ expr: read('promises_kept_ratio'), legend: 'kept' }],
      width: 8,
      noValue: 'nothing is promised',
      runbooks: ['promises-broken'],
    }),
    series({
      title: 'Promises that can be kept',
      description:
        'SKUs with catalog.watchlist.max_age, by whether the account can keep that (catalog.promises).',
      unit: 'short',
      queries: [{ expr: read('promises', 'feasible'), legend: 'can be kept: {{feasible}}' }],
      width: 8,
      noValue: 'nothing is promised',
    }),
  ],
};
