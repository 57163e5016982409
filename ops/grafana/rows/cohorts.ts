import { countIn, perMinute, read, readPerMinute, where } from '../expressions.ts';
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
    series({
      title: 'Releases of lines, in a day',
      description:
        'Lines (brand and model) of live SKUs that were suspected to move together. Confirmed: they did, so this market has releases. Dismissed: it was chance; some ten in two days are usual in any market.',
      unit: 'short',
      queries: [{ expr: countIn('releases_total', '1d', ['outcome']), legend: '{{outcome}}' }],
      width: 12,
    }),
    series({
      title: 'Refreshes for releases',
      description: 'Live refreshes that came early because their line moves, or was suspected to.',
      unit: 'cpm',
      queries: [{ expr: perMinute('release_refreshes_total'), legend: 'refreshes' }],
      width: 12,
    }),
    series({
      title: 'Hints: how often they are right',
      description:
        'Of each source of hints (catalog.hint), as refreshes have shown it: precision, how often a SKU had moved that it hinted at; recall, the part of all moves that it told of. A source of which no refresh has tested a hint has a precision of 30 %.',
      unit: 'percentunit',
      queries: [
        { expr: read('hint_precision_ratio', 'source'), legend: 'precision {{source}}' },
        { expr: read('hint_recall_ratio', 'source'), legend: 'recall {{source}}' },
      ],
      width: 8,
      max: 1,
    }),
    series({
      title: 'Hints a minute',
      description:
        'Hints that were read, and refreshes that they brought forward, by source. Sources with many hints and few such refreshes are hardly ever right, or refreshes are not scarce.',
      unit: 'cpm',
      queries: [
        { expr: readPerMinute('hints_total', 'source'), legend: 'hints {{source}}' },
        { expr: readPerMinute('hint_refreshes_total', 'source'), legend: 'refreshes {{source}}' },
      ],
      width: 8,
    }),
    series({
      title: 'Hints that wait',
      description:
        'Hints that were given and not read yet, and those whose SKU has not been refreshed since, by source. More wait of a source the longer refreshes have tested it.',
      unit: 'short',
      queries: [
        { expr: read('unread_hints'), legend: 'not read' },
        { expr: read('waiting_hints', 'source'), legend: 'for a refresh: {{source}}' },
      ],
      width: 8,
    }),
    series({
      title: 'Refreshes from SQL',
      description:
        'SKUs that were asked for by catalog.refresh and catalog.refresh_now, and calls of these that were refused, because they were above their part of the requests, or too many waited.',
      unit: 'cpm',
      queries: [
        { expr: readPerMinute('sql_refreshes_total'), legend: 'SKUs' },
        { expr: readPerMinute('sql_refreshes_refused_total'), legend: 'refused calls' },
      ],
      width: 24,
    }),
  ],
};
