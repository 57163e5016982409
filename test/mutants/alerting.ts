import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in who is told of what: alerts, and what leads from one to what is to be done. */
export const ALERTING: readonly Mutant[] = [
  ...faultsOf(
    'ops/alertmanager/alertmanager.yml',
    ['test/ops/alertmanager.test.ts'],
    ['alertmanager: an acknowledged page hides all others', '      group_by: [job, alertname]\n', ''],
    [
      'alertmanager: a page is titled by what is resolved',
      "description: '{{ with or .Alerts.Firing .Alerts }}",
      "description: '{{ with .Alerts }}",
    ],
    [
      'alertmanager: a page that is over has no title',
      "description: '{{ with or .Alerts.Firing .Alerts }}",
      "description: '{{ with .Alerts.Firing }}",
    ],
  ),
];
