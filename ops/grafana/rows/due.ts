import { read } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const due: Row = {
  title: 'Due by reason',
  panels: [
    series({
      title: 'SKUs due',
      description:
        'SKUs that are due for a refresh. A SKU has one reason; deferred SKUs and those with errors count once their wait is over.',
      unit: 'short',
      queries: [{ expr: read('due_skus', 'reason'), legend: '{{reason}}' }],
      width: 12,
      stacked: true,
      runbooks: ['backlog-stuck'],
    }),
    series({
      title: 'Oldest due SKU',
      description: 'How long the longest-waiting SKU has been due, by reason.',
      unit: 's',
      queries: [{ expr: read('oldest_due_age_seconds', 'reason'), legend: '{{reason}}' }],
      width: 12,
      runbooks: ['backlog-stuck'],
    }),
  ],
};
