import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what operators start: the compose file, the image, and their documentation. */
export const OPERATIONS: readonly Mutant[] = [
  ...faultsOf(
    'docker-compose.yml',
    ['test/ops/compose-settings.test.ts'],
    [
      'compose: two mirrors of one host share an image',
      '${COMPOSE_PROJECT_NAME:-catalog-mirror}:local',
      'catalog-mirror:local',
    ],
    [
      'compose: settings of .env do not reach the worker',
      '    env_file: [{ path: .env, required: false }]\n',
      '',
    ],
    ['compose: the trial goes through a proxy', "      http_proxy: ''\n", ''],
    ['compose: a further name of the worker is dropped', 'worker,${HTTP_ALLOWED_HOSTS:-worker}', 'worker'],
  ),
  ...faultsOf(
    'docker-compose.yml',
    ['test/ops/compose-postgres.pg.test.ts'],
    [
      'compose: a Postgres without role and database is healthy',
      "['CMD', 'psql', '-wXAtq', '-h', '127.0.0.1', '-U', 'catalog_mirror', '-d', 'catalog', '-c', 'select 1']",
      "['CMD', 'pg_isready', '-h', '127.0.0.1', '-U', 'catalog_mirror', '-d', 'catalog']",
    ],
  ),
  ...faultsOf(
    'docs/running.md',
    ['test/ops/compose-settings.test.ts'],
    [
      'compose: with servers of its own the worker waits for those left out',
      'depends_on: !reset {}',
      'depends_on: {}',
    ],
    ['compose: servers that are not needed are started', '  redis: { profiles: [not-needed] }\n', ''],
  ),
  ...faultsOf(
    'ops/secrets/README.md',
    ['test/ops/compose-settings.test.ts'],
    ['compose: mounts stay unreadable', 'chmod -R a+rX ../postgres ../prometheus ../grafana\n', ''],
  ),
  ...faultsOf(
    'Dockerfile',
    ['test/ops/compose.test.ts'],
    ['image: the value of an option is the command', '/^--env-file(=|$)/{/=/!n;$s/.*/run/p;d};', ''],
    ['image: any argument is the command', 'd};p;q', 'd};p'],
    ['image: without a command nobody asks the daemon', '/(\\.js|catalog-mirror)$/!d;$s/.*/run/p;d}', 'd}'],
    ['image: a program that is not ours is a daemon', '/(\\.js|catalog-mirror)$/!d;$s', '$s'],
    [
      'image: the command of its PATH behind an init is no program of ours',
      '(dist\\/(main|bin)\\.js|catalog-mirror)$/{',
      'dist\\/(main|bin)\\.js$/{',
    ],
    [
      'image: without a command the one of its PATH is no daemon',
      '/(\\.js|catalog-mirror)$/!d',
      '/\\.js$/!d',
    ],
  ),
  ...faultsOf(
    'Dockerfile',
    ['test/ops/images.test.ts'],
    ['image: has no IPv6', 'HTTP_HOST=::', 'HTTP_HOST=0.0.0.0'],
  ),
  ...faultsOf(
    'src/daemon/http/listen.ts',
    ['test/daemon/listen.test.ts'],
    ['listen: without IPv6 there is no server', 'host !== EVERY || !NO', 'true || !NO'],
    ['listen: another address takes the place of any', 'host !== EVERY || ', ''],
    ['listen: whatever fails is IPv6', ' || !NO_IPV6.has(errorCode(error))', ''],
  ),
  ...faultsOf(
    'ops/prometheus/recording.yml',
    ['test/ops/rules.test.ts'],
    [
      'freshness: what each call takes is a breach',
      '1 + 6 / max by (job, price_source) (catalog_mirror_price_age_target_seconds)',
      '1 + 0 / max by (job, price_source) (catalog_mirror_price_age_target_seconds)',
    ],
    [
      'freshness: without a known target there is no alert',
      '                  or 1 + 0 * max by (job, price_source) (catalog_mirror_fresh_skus)\n',
      '',
    ],
    [
      'freshness: a short target has never a page',
      '              * on (job, price_source) (\n',
      '              - on (job, price_source) (\n                -1 +\n',
    ],
  ),
  ...faultsOf(
    'src/telemetry/metrics/mirror-metrics.ts',
    ['test/telemetry/metrics.test.ts'],
    [
      'freshness: the target of live prices is that of the others',
      'value: targets.liveSeconds',
      'value: targets.snapshotSeconds',
    ],
  ),
  ...faultsOf(
    'docs/steering.md',
    ['test/docs/drop.pg.test.ts'],
    ['drop: SKUs that it has listed stay', 'AND b.weight IS NULL AND', 'AND b.weight < 0 AND'],
    [
      'drop: what somebody has changed since is taken back',
      "b.weight IS NOT NULL AND w.note = 'drop'",
      'b.weight IS NOT NULL',
    ],
    ['drop: the note of a listed SKU is lost', ', note = b.note\n', '\n'],
  ),
  ...faultsOf(
    'src/cli/doctor/report.ts',
    ['test/doctor/json.test.ts'],
    ['doctor: Docker keeps the quotes of a name', ': `${name}=${value}`', ": `${name}='${value}'`"],
    ['doctor: a name is read in another way by systemd', '[\\\\$\\p{Cc}]', '[$\\p{Cc}]'],
    ['doctor: compose puts a variable in the place of a name', '[\\\\$\\p{Cc}]', '[\\\\\\p{Cc}]'],
    ['doctor: what stands behind a # is a comment to compose', '|\\s#', ''],
  ),
  ...faultsOf(
    'src/cli/refresh.ts',
    ['test/cli/arguments.test.ts'],
    [
      'refresh: the whole catalog is due beside one SKU',
      'positionals.length > 0 && given.has(option)',
      'false',
    ],
  ),
  ...faultsOf(
    'ops/prometheus/alerts.yml',
    ['test/ops/rules.test.ts'],
    [
      'absent: a target that comes and goes is never absent for long',
      'max_over_time(up{job=~"(.+/)?catalog-mirror.*"}[10m])',
      'up{job=~"(.+/)?catalog-mirror.*"}',
    ],
    [
      'live: a pause is an outage',
      'live-outage|live-deferred"}) == 1\n            unless on (job) (catalog_mirror:paused == 1)',
      'live-outage|live-deferred"}) == 1',
    ],
    [
      'alerts: a live source that fails in two ways by turns is silent',
      'max by (job) (catalog_mirror:state_reason{code=~"live-outage',
      'max by (job, code) (catalog_mirror:state_reason{code=~"live-outage',
    ],
  ),
];
