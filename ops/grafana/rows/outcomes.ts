import { countIn, perMinute } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const outcomes: Row = {
  title: 'Outcomes',
  panels: [
    series({
      title: 'SKUs in bulk answers',
      description: 'By outcome: resolved, not found, deferred, error.',
      unit: 'cpm',
      queries: [{ expr: perMinute('bulk_skus_total', ['outcome']), legend: '{{outcome}}' }],
      width: 8,
      stacked: true,
    }),
    series({
      title: 'Bulk answers that do not match their requests, in an hour',
      description:
        'SKUs that an answer omitted, listed with two outcomes or listed without being requested, and size_map entries without a readable price (see PARTNER_PRICE_FIELDS).',
      unit: 'short',
      queries: [
        { expr: countIn('bulk_unaccounted_skus_total', '1h'), legend: 'unaccounted SKUs' },
        { expr: countIn('bulk_answers_not_stored_total', '1h'), legend: 'answers not stored' },
        { expr: countIn('unpriced_entries_total', '1h'), legend: 'entries without a price' },
      ],
      width: 8,
      runbooks: ['quarantine'],
    }),
    series({
      title: 'Unreadable records in six hours',
      description:
        'Rejected manifest lines by reason, and unreadable entries of answers by route. More than ten raise a ticket.',
      unit: 'short',
      queries: [
        {
          expr: `${countIn('manifest_rejected_lines_total', '6h', ['reason'])} > 0`,
          legend: 'manifest: {{reason}}',
        },
        { expr: countIn('unreadable_records_total', '6h', ['source']), legend: 'answer: {{source}}' },
      ],
      width: 8,
      runbooks: ['quarantine'],
    }),
    series({
      title: 'Manifest and delta runs in an hour',
      description: 'By outcome; outcomes that did not occur are left out.',
      unit: 'short',
      queries: [
        { expr: `${countIn('syncs_total', '1h', ['kind', 'outcome'])} > 0`, legend: '{{kind}}: {{outcome}}' },
      ],
      width: 8,
      runbooks: ['manifest-failing', 'delta-stalled'],
    }),
    series({
      title: 'Manifest lines in an hour',
      description: 'Lines read, applied or rejected.',
      unit: 'short',
      queries: [{ expr: countIn('manifest_lines_total', '1h', ['outcome']), legend: '{{outcome}}' }],
      width: 8,
      runbooks: ['manifest-failing'],
    }),
    series({
      title: 'Baselines in six hours',
      description: 'Manifests applied, by cause. Three because of a broken chain raise a ticket.',
      unit: 'short',
      queries: [{ expr: countIn('rebaselines_total', '6h', ['because']), legend: '{{because}}' }],
      width: 8,
      runbooks: ['rebaseline-loop'],
    }),
  ],
};
