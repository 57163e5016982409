import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in alerts: who is told what, and the links from an alert to its remedy. */
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
      'alerts: a mass move that is over fires again at a scrape that cannot read the mirror',
      '              and on (job) ALERTS{alertname="CatalogMirrorMassMove", alertstate="firing"}\n',
      '',
    ],
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
  ...faultsOf(
    'src/pace/view.ts',
    ['test/store/thresholds.pg.test.ts'],
    [
      'pace: what others leave is not shown',
      'Math.min(ceilingAt(limits, pace, now), mostInWindow)',
      'ceilingAt(limits, pace, now)',
    ],
  ),
  ...faultsOf(
    'drizzle/0081_pace_view.sql',
    ['test/store/thresholds.pg.test.ts'],
    [
      'pace: SQL knows of no other services',
      'CASE WHEN others.sent > 0 THEN greatest(1, s.rate_floor,',
      'CASE WHEN false THEN greatest(1, s.rate_floor,',
    ],
  ),
  ...faultsOf(
    'drizzle/0081_pace_view.sql',
    ['test/daemon/scrape.pg.test.ts'],
    [
      'followers: each scrape reads all that they lack',
      'FROM catalog.changes(f."position", 1) c',
      'FROM catalog.changes(f."position", 10000) c LIMIT 1',
    ],
    ['followers: a batch is one change', 'sum(b.last_id - greatest(b.id - 1, start))', 'count(*)'],
    ['followers: all that they lack is counted', 'RETURN least(most,', 'RETURN least(1000000,'],
  ),
  ...faultsOf(
    'src/sync/manifest.ts',
    ['test/contract/manifest-refusals.e2e.test.ts'],
    [
      'manifest: a refusal names no numbers',
      'hint: REFUSAL_HINTS[reason], problem }',
      'hint: REFUSAL_HINTS[reason] }',
    ],
  ),
  ...faultsOf(
    'src/sync/manifest-decision.ts',
    ['test/sync/manifest-decision.test.ts'],
    [
      'manifest: fewer SKUs are said to be enough than are',
      'Math.ceil(m.listedBefore * m.minShare)',
      'Math.floor(m.listedBefore * m.minShare)',
    ],
  ),
  ...faultsOf(
    'src/telemetry/log/sync-lines.ts',
    ['test/telemetry/bulk-lines.test.ts'],
    [
      'progress: what other daemons do counts for nothing',
      'Math.max(perMinute, fallPerMinute(left, at))',
      'perMinute',
    ],
    [
      'progress: a backlog that grows is never worked off',
      'Math.max(perMinute, fallPerMinute(left, at))',
      'fallPerMinute(left, at)',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    ['test/store/counts-corners.pg.test.ts'],
    [
      'progress: SKUs that wait are left to do',
      'filter (where not catalog_internal.is_waiting(d, clock_timestamp()))',
      'filter (where true)',
    ],
  ),
  ...faultsOf(
    'ops/grafana/rows/trust.ts',
    ['test/static/docs.test.ts'],
    ['dashboard: a runbook that no panel leads to', "        'job-mixed',\n", ''],
  ),
];
