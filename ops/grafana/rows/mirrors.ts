import { readOfAll, where } from '../expressions.ts';
import { type Row, series, stat } from '../panels.ts';

/** Every mirror that this Prometheus scrapes, beside the chosen one. */
export const mirrors: Row = {
  title: 'All mirrors',
  panels: [
    stat({
      title: 'States of all mirrors',
      description:
        'State of every mirror (job) that is scraped, also of those that are not chosen at the top. If daemons of a mirror differ, all their states are shown.',
      unit: 'short',
      queries: [{ expr: `${readOfAll('state', 'state')} == 1`, legend: '{{job}}: {{state}}' }],
      width: 8,
      base: 'blue',
      showNames: true,
      noValue: 'no mirror is scraped',
      runbooks: ['absent'],
    }),
    series({
      title: 'SKUs within target, all mirrors',
      description:
        'Share of the priced SKUs that are fresh, by mirror and cohort. The dashed line is the objective, 95 %.',
      unit: 'percentunit',
      queries: [
        {
          expr: `${readOfAll('fresh_skus', 'price_source')} / (sum by (job, price_source) (${readOfAll(where('skus', { state: 'priced' }), 'state', 'price_source')}) > 0)`,
          legend: '{{job}} {{price_source}}',
        },
      ],
      width: 8,
      max: 1,
      base: 'red',
      thresholds: [[0.95, 'green']],
      runbooks: ['freshness-burn'],
    }),
    series({
      title: 'SKUs due, all mirrors',
      description: 'SKUs that are due for a refresh, for any reason, by mirror.',
      unit: 'short',
      queries: [{ expr: `sum by (job) (${readOfAll('due_skus', 'reason')})`, legend: '{{job}}' }],
      width: 8,
      runbooks: ['backlog-stuck'],
    }),
  ],
};
