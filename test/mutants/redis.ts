import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what is reported of a Redis that rejects commands, and in what still works without it. */
export const REDIS: readonly Mutant[] = [
  ...faultsOf(
    'src/queues/backend.ts',
    ['test/queues/refusals.e2e.test.ts'],
    ['redis: the first database in place of one that is refused', '      redis.disconnect(true);\n', ''],
    ['redis: a user without INFO gets no job for ever', '  answerInfo(redis);\n', ''],
    [
      'redis: a login that was refused is nothing between two tries',
      'redisCode(error) ?? refused;',
      'redisCode(error);',
    ],
    ['redis: a login that was refused stays refused', "connection.on('ready', () => (refused = null));", ''],
  ),
  ...faultsOf(
    'src/telemetry/log/store-lines.ts',
    ['test/telemetry/store-lines.test.ts'],
    [
      'queues: back as soon as a job ends that was run without them',
      '    worked(job) {\n',
      "    worked(job) {\n      if (throttle.over('queues')) log.info({ event: 'queues.recovered', times: 1, lastedSeconds: 0 });\n",
    ],
  ),
  ...faultsOf(
    'src/config/rules.ts',
    ['test/config-urls.test.ts'],
    ['redis: parameters are options of the driver', "name === 'family' && ", "name !== '' || "],
    ['redis: a path that is no number', '/^(\\/\\d*)?$/.test(url.pathname)', 'url.pathname.length < 99'],
  ),
  ...faultsOf(
    'src/telemetry/telemetry.ts',
    ['test/telemetry/store-lines.test.ts'],
    ["queues: somebody else's job is dropped without a word", 'unknownJob(queue);', '{}'],
  ),
  ...faultsOf(
    'src/queues/runner.ts',
    ['test/queues/own-runs.pg.test.ts'],
    ['own runs: one slice, and then a wait', "outcome !== 'over' ||", 'true ||'],
    ['own runs: they go on beside the queues', '|| !this.#isQuiet(job)', ''],
    [
      'own runs: they go on while the process stops',
      '|| this.#stopped || !this.#isQuiet',
      '|| !this.#isQuiet',
    ],
  ),
];
