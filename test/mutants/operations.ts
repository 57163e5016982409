import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what operators start: the compose file, the image, and what is written beside them. */
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
];
