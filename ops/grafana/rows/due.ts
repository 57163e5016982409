import { read } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const due: Row = {
  title: 'Due by reason',
  panels: [
    series({
      title: 'SKUs due',
      description:
        'SKUs owed a look now. A SKU has one reason; deferred and erring SKUs count once their wait is over.',
      unit: 'short',
      queries: [{ expr: read('due_skus', 'reason'), legend: '{{reason}}' }],
      width: 12,
      stacked: true,
      runbooks: ['backlog-stuck'],
    }),
    series({
      title: 'Oldest due SKU',
      description: 'For how long the SKU that has waited longest has been due, by reason.',
      unit: 's',
      queries: [{ expr: read('oldest_due_age_seconds', 'reason'), legend: '{{reason}}' }],
      width: 12,
      runbooks: ['backlog-stuck'],
    }),
  ],
};
