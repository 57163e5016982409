import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in reporting what somebody has set in Postgres, and what to do about it. */
export const OBSTACLES: readonly Mutant[] = [
  ...faultsOf(
    'src/store/connection/remedies.ts',
    ['test/store/remedies.test.ts'],
    ['obstacles: a trigger that raises is a fault', "  P0001: 'refused-by-trigger',\n", ''],
    ['obstacles: a limit of temporary files is a fault', "  '53400': 'temp-file-limit',\n", ''],
    ['obstacles: a lock is a fault', "  [LOCK_NOT_AVAILABLE]: 'locked',\n", ''],
    [
      'obstacles: the limit of a role is that of the server',
      'return limit ?? REMEDIES[kind];',
      'return REMEDIES[kind];',
    ],
    ['obstacles: the HINT of Postgres goes first', 'if (hint !== null && !isPostgres)', 'if (hint !== null)'],
  ),
  ...faultsOf(
    'src/store/connection/sql-errors.ts',
    ['test/store/obstacles.pg.test.ts', 'test/store/remedies.test.ts'],
    [
      'obstacles: a publication is in the way by its SQLSTATE',
      "carried(error, 'routine') === 'CheckCmdReplicaIdentity'",
      'sqlState(error) === WRONG_STATE',
    ],
    [
      'obstacles: it is not said that a publication rejects rows',
      'if (isUnchangeable(error)) return',
      'if (false) return',
    ],
  ),
  ...faultsOf(
    'src/store/connection/published.ts',
    ['test/store/obstacles.pg.test.ts'],
    ['obstacles: a row filter is a replica identity that is lacking', 'code === WRONG_STATE', 'true'],
  ),
  ...faultsOf(
    'src/cli/doctor/postgres.ts',
    ['test/store/obstacles.pg.test.ts'],
    ['obstacles: the event trigger is not named', "kind === 'refused-by-trigger' && named !== ''", 'false'],
    ['obstacles: tables that nobody can change are not named', '    ...unchangeableLines(facts),\n', ''],
  ),
  ...faultsOf(
    'src/store/connection/startup.ts',
    ['test/store/obstacles.pg.test.ts'],
    [
      'obstacles: a Postgres without a connection left is away',
      'new DatabaseAway(reason, remedyOf(reason) ?? known)',
      'new DatabaseAway(reason, known)',
    ],
  ),
  ...faultsOf(
    'src/store/connection/startup.ts',
    ['test/store/startup-refused.pg.test.ts'],
    [
      'obstacles: a server that lets no session begin is away',
      'isTurnedAway(reason) ? TURNED_AWAY : null',
      'null',
    ],
  ),
  ...faultsOf(
    'src/cli/command.ts',
    ['test/cli/arguments.test.ts'],
    [
      'arguments: each letter behind one dash is an option',
      'if (letter !== undefined) args',
      'if (letter?.index === -1) args',
    ],
  ),
  ...faultsOf(
    'src/own-environment.ts',
    ['test/cli/driver-environment.e2e.test.ts'],
    ['environment: the drivers read what fills in DATABASE_URL no more', ' && !FILL_IN.has(name)', ''],
    ['environment: the drivers read their own variables', '\nforgetDriverVariables();', ''],
  ),
  ...faultsOf(
    'src/queues/task-run.ts',
    ['test/store/obstacles.pg.test.ts'],
    ['obstacles: a task says that it was a fault', "obstacleOf(thrown) ?? 'fault'", "'fault'"],
  ),
  ...faultsOf(
    'src/status/progress.ts',
    ['test/status/obstacles.test.ts'],
    ['obstacles: the state does not say what is in the way', "what === undefined ? '' : `: ${what}`", "''"],
  ),
  ...faultsOf(
    'src/status/failing.ts',
    ['test/status/obstacles.test.ts'],
    ['obstacles: the state does not say what to do', 'remedyOfKind(state.outcome)?.hint ?? DOCTOR', 'DOCTOR'],
  ),
  ...faultsOf(
    'src/telemetry/log/scrub.ts',
    ['test/telemetry/short-secrets.test.ts'],
    ['secrets: a letter is hidden in every word', 'value.length < SHORTEST_WITHIN_WORDS', 'false'],
    [
      'secrets: four characters are hidden where they stand alone only',
      'SHORTEST_WITHIN_WORDS = 4',
      'SHORTEST_WITHIN_WORDS = 5',
    ],
  ),
];
