import { faultsOf, type Mutant } from './mutant.ts';

/**
 * Faults that keep a consumer of changes from ending or continuing, or demand too much of a server or its driver.
 */
export const CONSUMERS: readonly Mutant[] = [
  ...faultsOf(
    'src/cli/follow/following.ts',
    ['test/follow/unread.pg.test.ts'],
    [
      'consumers: a Postgres from which nothing can be read is back each time',
      'const end = await follow(',
      'told.hasRead?.();\n  const end = await follow(',
    ],
  ),
  ...faultsOf(
    'src/cli/follow/following.ts',
    ['test/follow/away.pg.test.ts'],
    [
      'consumers: who follows once waits for ever for Postgres',
      'if (once && failures >= attempts)',
      'if (false)',
    ],
    [
      'consumers: what is read and never kept is read each second',
      'isAway = false;\n  };\n  const hasKept',
      'isAway = false;\n    failures = 0;\n  };\n  const hasKept',
    ],
    [
      'consumers: what is kept is no reason to ask soon',
      '  const hasKept = () => {\n    failures = 0;',
      '  const hasKept = () => {',
    ],
    [
      'consumers: who is told to stop waits for a silent Postgres',
      'orGivenUp(followOnce(life, known, session, { hasRead, hasKept }), life.patience)',
      'followOnce(life, known, session, { hasRead, hasKept })',
    ],
  ),
  ...faultsOf(
    'src/store/history/followers.ts',
    ['test/follow/names.pg.test.ts'],
    [
      'followers: who has drawn the number of another process takes its name',
      'or (pid, backend_start) not in (select * from unnest($3::int[], $4::timestamptz[]))',
      'or pid is null and $3::int[] is null and $4::timestamptz[] is null',
    ],
  ),
  ...faultsOf(
    'src/store/history/follower-name.ts',
    ['test/follow/names.pg.test.ts'],
    [
      'followers: who has drawn the number of another process writes for it',
      'and pid = $3 and backend_start = $4',
      'and ($3::int, $4::timestamptz) is not null',
    ],
  ),
  ...faultsOf(
    'src/cli/follow.ts',
    ['test/follow/follow.e2e.test.ts'],
    [
      'consumers: who is told to stop before Postgres has answered has failed',
      'if (!stopped.signal.aborted || !(error instanceof DatabaseAway)) throw error;',
      'throw error;',
    ],
  ),
  ...faultsOf(
    'src/client/source.ts',
    ['test/client/silent.pg.test.ts'],
    ['consumers: a silent server is waited for for ever', 'answer_timeout: answerWithinMs / 1000,', ''],
    [
      'consumers: a batch that takes its time is never applied',
      'isworking: askingAtWork(() => postgres(url, { ...connection, max: 1 })),',
      '',
    ],
    [
      'consumers: a dead session keeps the position',
      'ondropped: endingDropped(() => sql, answerWithinMs),',
      '',
    ],
  ),
  ...faultsOf(
    'src/client/at-work.ts',
    ['test/client/silent.pg.test.ts'],
    [
      'consumers: a session that waits for its client is at work',
      "and a.wait_event_type is distinct from 'Client' end",
      "or a.state like 'idle%' end",
    ],
    [
      'consumers: behind a pooler nobody is at work',
      'return isByPooler(rows, rows[0]?.asking) || ',
      'return ',
    ],
  ),
  ...faultsOf(
    'src/client/turns.ts',
    ['test/client/silent.pg.test.ts'],
    [
      'consumers: who ends waits for its turn',
      'if (this.#isApplying) return;',
      'if (!this.#isApplying) return;',
    ],
    ['consumers: a wait for nothing is left behind', '      this.#cancel();\n', ''],
    ['consumers: a batch that is being applied is broken off', '    this.#isApplying = true;\n', ''],
  ),
  ...faultsOf(
    'src/client/transact.ts',
    ['test/client/transact.test.ts'],
    [
      'consumers: a cancellation that is reset ends the program',
      'Promise.resolve(canceller?.(statement)).catch(() => {});',
      'void canceller?.(statement);',
    ],
  ),
  ...faultsOf(
    'src/client/transact.ts',
    ['test/client/silent.pg.test.ts'],
    [
      'consumers: a host that is gone keeps the position for hours',
      "set_config('tcp_keepalives_idle', '30', true)",
      "''",
    ],
  ),
  ...faultsOf(
    'src/client/source.ts',
    ['test/client/waiting.test.ts'],
    ['consumers: who hears of nothing is told once a minute', 'isDeaf ||= isPolled && hasFound;', ''],
    [
      'consumers: who has heard of nothing once polls for ever',
      '    isDeaf = false;\n    tell();',
      '    tell();',
    ],
    [
      'consumers: who is kept waiting for a connection to listen is deaf',
      'await Promise.race([trying, sleep(unheardMs, AbortSignal.any([over, listens.signal]))]);',
      'await trying;',
    ],
    ['consumers: each poll leaves a listener in the driver', 'pollsLeft = 2 ** refusals - 1;', ''],
    [
      'consumers: who ends waits for a silent server',
      'sleep(UNLISTEN_WITHIN_MS, over.signal)',
      'new Promise(() => {})',
    ],
  ),
  ...faultsOf(
    'src/client/follow.ts',
    ['test/client/returned.pg.test.ts'],
    [
      'clients: what apply returns to be sent is never sent',
      'await workOf(() => apply(tx, batch));',
      'await apply(tx, batch);',
    ],
    [
      'clients: what empties a copy is never sent',
      'await workOf(() => onLost(tx, error));',
      'await onLost(tx, error);',
    ],
  ),
  ...faultsOf(
    'src/client/pooler.ts',
    ['test/client/pooled.pg.test.ts'],
    [
      'consumers: what a session of a pooler has prepared is asked of another',
      'if (isOurs) Object.assign(sql.options, { prepare: false });',
      '',
    ],
    ['consumers: a pooler without transactions is tried for ever', 'await refuseStatementMode(sql);', ''],
  ),
  ...faultsOf(
    'src/client/transact.ts',
    ['test/client/pooled.pg.test.ts'],
    [
      'consumers: what a pooler rolls back is applied again and again',
      'if (commits && !transaction.hasFailed) await guarded.unsafe(COMMIT);',
      '',
    ],
  ),
  ...faultsOf(
    'src/follow/follower.ts',
    ['test/follow/pooled.pg.test.ts'],
    ['consumers: a command that hears of nothing asks once a minute', 'isDeaf ||= isPolled;', ''],
  ),
  ...faultsOf(
    'src/cli/follow/pooled.ts',
    ['test/follow/pooled.pg.test.ts'],
    [
      'followers: a name is held by a session of nobody',
      'if (problem !== null) throw new PoolerError(problem.kind, problem.what, problem.hint);',
      '',
    ],
    [
      'followers: one waits for a pooler that has no session left',
      'await within(readPooling(...asks), withinMs)',
      'await readPooling(...asks)',
    ],
  ),
  ...faultsOf(
    'src/store/history/followers.ts',
    ['test/follow/pooled.pg.test.ts'],
    [
      'followers: a session that a pooler keeps holds the name of who has died',
      'and starts_with(a.application_name, left($5, 63))',
      '',
    ],
    [
      'followers: one is kept from a name by its own session',
      'or pid <> pg_backend_pid() and exists',
      'or exists',
    ],
  ),
  ...faultsOf(
    'src/client/follow.ts',
    ['test/client/waiting.test.ts'],
    [
      'consumers: a reading without an answer keeps who ends',
      'unlessOver(readBatch(sql, position, batch), signal)',
      'readBatch(sql, position, batch)',
    ],
  ),
  ...faultsOf(
    'src/client/errors.ts',
    ['test/client/change.test.ts'],
    ['consumers: a full disk ends following', ' || storeFailure(error) !== null', ''],
  ),
];
