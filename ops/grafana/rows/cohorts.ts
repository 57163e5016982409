import { read, where } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const cohorts: Row = {
  title: 'Cohort sizes',
  panels: [
    series({
      title: 'Priced SKUs by cohort',
      description: 'Number of live-priced and snapshot-priced SKUs.',
      unit: 'short',
      queries: [
        { expr: read(where('skus', { state: 'priced' }), 'price_source'), legend: '{{price_source}}' },
      ],
      width: 8,
      stacked: true,
    }),
    series({
      title: 'SKUs without a price',
      description:
        'pending: not priced yet. not_found: the price routes do not know them. removed: no longer listed.',
      unit: 'short',
      queries: [
        {
          expr: `sum by (state) (${read(where('skus', { state: 'priced' }, '!='), 'state', 'price_source')})`,
          legend: '{{state}}',
        },
      ],
      width: 8,
    }),
    series({
      title: 'Incident',
      description:
        '1 while the whole catalog is treated as live-priced, by evidence: the counts of the catalog snapshot, or deferrals.',
      unit: 'bool',
      queries: [{ expr: read('incident', 'because'), legend: '{{because}}' }],
      width: 8,
      max: 1,
    }),
  ],
};
