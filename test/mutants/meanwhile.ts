import { faultsOf, type Mutant } from './mutant.ts';

const LEFT = ['test/store/left-connections.pg.test.ts'];

/** Faults that drop the handling of something that ends, fails or is decided by others between two steps. */
export const MEANWHILE: readonly Mutant[] = [
  ...faultsOf('src/store/connection/answer-limit.ts', LEFT, [
    'connections: one that fails before anybody has it is left',
    '    await client.end().catch(() => {});\n    throw error;',
    '    throw error;',
  ]),
  ...faultsOf('src/store/connection/db.ts', LEFT, [
    'connections: one whose settings are refused is left',
    'await orEnd(client, async',
    'await ((_, work) => work())(client, async',
  ]),
  ...faultsOf('src/store/catalog/baseline.ts', LEFT, [
    'connections: that of a manifest that has no table is left',
    'await orEnd(client, async',
    'await ((_, work) => work())(client, async',
  ]),
  ...faultsOf('src/store/setup/instance.ts', LEFT, [
    'connections: that of a daemon that cannot register is left',
    'const { instance, alone } = await orEnd(client, async',
    'const { instance, alone } = await ((_, work) => work())(client, async',
  ]),
  ...faultsOf(
    'src/store/catalog/tokens.ts',
    ['test/store/broken-chain.pg.test.ts'],
    [
      'broken chain: one that breaks while a merged manifest ends is mended in a week',
      "then 'infinity' else t.next_at end",
      'then t.next_at else t.next_at end',
    ],
    [
      'broken chain: a manifest that mends it is fetched twice',
      ' and t.started_at <= s.manifest_applied_at\n',
      '\n',
    ],
    [
      'broken chain: a manifest that was put off stays so',
      '      await bringManifestForward(tx, token);\n',
      '',
    ],
    ['broken chain: a manifest that comes sooner is put off for an hour', 't.next_at > within.hour and', ''],
  ),
  ...faultsOf(
    'src/store/catalog/delta.ts',
    ['test/sync/delta-answers.pg.test.ts'],
    ['delta: an answer that may be cut is whole', "  await requestTask(tx, 'manifest');\n", ''],
    ['delta: one round number is a limit', ' and round_changed = ${count}\n', '\n'],
  ),
  ...faultsOf(
    'src/queues/runner.ts',
    ['test/queues/schedules.pg.test.ts'],
    [
      'schedules: a slow store of the queues ends the session that has their lock',
      "await tx`select set_config('idle_in_transaction_session_timeout', ${String(idleMs)}, true)`;",
      'void idleMs;',
    ],
  ),
  ...faultsOf(
    'src/daemon/clock-watch.ts',
    ['test/daemon/clock-watch.pg.test.ts'],
    [
      'clock: while the histories are refused, each try brings forward what waits',
      'await putClockRight(sql, done);',
      'await putClockRight(sql);',
    ],
  ),
  ...faultsOf(
    'src/store/clock.ts',
    ['test/daemon/clock-watch.pg.test.ts'],
    [
      'clock: set back again while the histories are refused, it leaves its times ahead',
      'if (seconds !== done.seconds) Object.assign(done, NOTHING_RIGHT, { seconds });',
      '',
    ],
    [
      'clock: once all is right, nothing is the next time',
      '  Object.assign(done, NOTHING_RIGHT);\n  return',
      '  return',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/tokens.ts',
    ['test/sync/rejected-token.pg.test.ts'],
    [
      'broken chain: once mended, it puts off a manifest that was asked for during a refused run',
      'and t.next_at > t.finished_at and s.chain',
      'and s.chain',
    ],
  ),
  ...faultsOf(
    'src/sync/delta.ts',
    ['test/sync/rejected-token.pg.test.ts'],
    [
      'broken chain: one that was mended unheard leaves the manifest its retry',
      'if (isOver || state.chainBrokenAt !== null)',
      'if (state.chainBrokenAt !== null)',
    ],
    [
      'broken chain: one that was mended by a run that fails leaves the manifest its retry',
      'if (isOver || state.chainBrokenAt !== null)',
      'if (isOver)',
    ],
  ),
  ...faultsOf(
    'src/store/answer/members.ts',
    ['test/store/volatile-members.pg.test.ts'],
    [
      'members: two daemons lock them in any order',
      'as h(part, path) order by part, path',
      'as h(part, path)',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/masses-begin.pg.test.ts'],
    [
      'mass moves: who waited in vain for an answer has seen what it moved',
      '  if (!areAllSeen) return skus;\n',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/answer/writes.ts',
    ['test/store/due.pg.test.ts'],
    [
      'errors: a report while the SKU is asked for ends no wait',
      'case when d.generation = h.generation or h.deferred',
      'case when true or h.deferred',
    ],
    [
      'errors: a report while the SKU is asked for ends the wait of one that was deferred',
      'd.generation = h.generation or h.deferred or own.deferrals > 0',
      'd.generation = h.generation',
    ],
    [
      'errors: a report while the SKU is asked for ends the wait of one that fails by itself',
      "          or h.blame = 'alone' or",
      '          or',
    ],
    [
      'errors: a report while the SKU is asked for ends the wait of all that are live',
      " or h.blame = 'class' and d.failures = 0",
      '',
    ],
  ),
];
