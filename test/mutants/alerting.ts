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
  ...faultsOf(
    'ops/prometheus/recording.yml',
    ['test/ops/rules.test.ts'],
    [
      'alerts: a scrape that cannot read the mirror ends what holds',
      'max_over_time(catalog_mirror_state_reason[5m])\n',
      'last_over_time(catalog_mirror_state_reason[5m])\n',
    ],
    [
      'alerts: a scrape that is lost ends what holds',
      'or last_over_time(catalog_mirror_state_reason[5m])',
      'or catalog_mirror_state_reason',
    ],
    [
      'alerts: a reason that is over goes on',
      '(last_over_time(catalog_mirror_state_reason{code="postgres-unavailable"}[5m])) == 1)',
      '(last_over_time(catalog_mirror_state_reason{code="postgres-unavailable"}[5m])) >= 0)',
    ],
  ),
  ...faultsOf(
    'ops/prometheus/alerts.yml',
    ['test/ops/rules.test.ts'],
    [
      'alerts: a scrape that cannot read the mirror gives a credential time',
      'max by (job) (last_over_time(catalog_mirror_credential_suspected[5m])) == 1\n              or',
      'max by (job) (catalog_mirror_credential_suspected) == 1\n              or',
    ],
    [
      'alerts: a scrape that cannot read the mirror gives a backlog time',
      'last_over_time(catalog_mirror_due_skus{reason!="error"}[5m])',
      'catalog_mirror_due_skus{reason!="error"}',
    ],
    [
      'alerts: rejections that are over are rejections',
      'max by (job) (last_over_time(catalog_mirror_refusals[5m])) > 0',
      'max by (job) (last_over_time(catalog_mirror_refusals[5m])) >= 0',
    ],
  ),
  ...faultsOf(
    'src/store/setup/migrations.ts',
    ['test/migrations/migrations.pg.test.ts'],
    ['migrations: a long one is silent', '      onPending?.(pending);\n', ''],
    [
      'migrations: a start that has none to apply says that it migrates',
      '    if (pending > 0) {\n      onPending?.(pending);\n',
      '    onPending?.(pending);\n    if (pending > 0) {\n',
    ],
  ),
  ...faultsOf(
    'src/daemon/database.ts',
    ['test/migrations/migrations.pg.test.ts'],
    ['migrations: nothing says that they are applied', 'if (begunAt !== null) {', 'if (false) {'],
  ),
  ...faultsOf(
    'src/status/health.ts',
    ['test/status/health.test.ts'],
    [
      'queues: a mirror that goes on without them is broken',
      "degraded(\n        'queues-unavailable'",
      "broken(\n        'queues-unavailable'",
    ],
    [
      'readyz: what is worst is said before what keeps it unready first',
      'UNREADY.map((unreadyCode) => reasons.find(({ code }) => code === unreadyCode))',
      '[reasons.find(({ code }) => UNREADY.includes(code))]',
    ],
  ),
  ...faultsOf(
    'ops/prometheus/alerts.yml',
    ['test/ops/reasons.test.ts'],
    ['alerts: nobody is told of rows that Postgres rejects', '|scope-differs|not-stored', '|scope-differs'],
    ['alerts: nobody is told of queues that are away', 'queues-unavailable|queues-silent', 'queues-silent'],
  ),
  ...faultsOf(
    'ops/prometheus/alerts.yml',
    ['test/ops/rules.test.ts'],
    [
      'alerts: queues that fail in two ways by turns are told of by nobody',
      'max by (job) (catalog_mirror:state_reason{code=~"queues',
      'max by (job, code) (catalog_mirror:state_reason{code=~"queues',
    ],
  ),
];
