import { read, where } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const calibration: Row = {
  title: 'How likely the prices are right, and whether they were',
  panels: [
    series({
      title: 'Actionable, and expected right',
      description:
        'Share of the priced SKUs that may be acted on as a whole: nothing speaks against them, and all their prices are right with ACTIONABLE_CONFIDENCE at least. Of single prices it is more. Expected right: the mean of p_right over the priced SKUs.',
      unit: 'percentunit',
      queries: [
        {
          expr: `${read('actionable_skus', 'price_source')} / (sum by (price_source) (${read(where('skus', { state: 'priced' }), 'state', 'price_source')}) > 0)`,
          legend: '{{price_source}}: actionable',
        },
        {
          expr: `${read('expected_right_skus', 'price_source')} / (sum by (price_source) (${read(where('skus', { state: 'priced' }), 'state', 'price_source')}) > 0)`,
          legend: '{{price_source}}: expected right',
        },
      ],
      width: 6,
      noValue: 'no price yet',
    }),
    series({
      title: 'Claimed, less found',
      description:
        'Mean of p_right before the refreshes of the last seven days, less the part of them that found the price as it was held. Above 0: prices were wrong more often than they said.',
      unit: 'percentunit',
      queries: [
        {
          expr: `${read('calibration_claimed_ratio', 'cohort')} - ${read('calibration_right_ratio', 'cohort')}`,
          legend: '{{cohort}}',
        },
      ],
      isSigned: true,
      width: 6,
      noValue: 'no refresh yet',
      runbooks: ['miscalibrated'],
    }),
    series({
      title: 'Waiting for a second answer',
      description:
        'SKUs whose newest prices are not actionable before a second answer: implausible numbers, and moves while many are implausible.',
      unit: 'short',
      queries: [{ expr: read('doubted_skus', 'doubt'), legend: '{{doubt}}' }],
      width: 6,
      noValue: 'none',
      runbooks: ['mass-move'],
    }),
    series({
      title: 'Calibration error',
      description:
        'Mean distance between what was claimed and what was found, over the tenths of p_right, in the last seven days. A cohort of few refreshes has one by chance: under a thousand some hundredths.',
      unit: 'percentunit',
      queries: [{ expr: read('calibration_error_ratio', 'cohort'), legend: '{{cohort}}' }],
      width: 6,
      noValue: 'no refresh yet',
      runbooks: ['miscalibrated'],
    }),
  ],
};
