import { faultsOf, type Mutant } from './mutant.ts';

/** Each keeps a consumer of changes from ending or from going on, or asks too much of a server or of its driver. */
export const CONSUMERS: readonly Mutant[] = [
  ...faultsOf(
    'src/cli/follow/following.ts',
    ['test/follow/unread.pg.test.ts'],
    [
      'consumers: a Postgres from which nothing can be read is back each time',
      'const end = await follow(',
      'hasRead();\n  const end = await follow(',
    ],
  ),
  ...faultsOf(
    'src/client/source.ts',
    ['test/client/waiting.test.ts'],
    ['consumers: each poll leaves a listener in the driver', 'pollsLeft = 2 ** refusals - 1;', ''],
    [
      'consumers: who ends waits for a silent server',
      'sleep(UNLISTEN_WITHIN_MS, over.signal)',
      'new Promise(() => {})',
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
