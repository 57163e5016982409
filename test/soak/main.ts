import { parseArgs } from 'node:util';
import { BACKENDS, type Backend, soak } from './soak.ts';

/*
 * npm run test:soak [-- --minutes 60 --seed N --queues redis|postgres|both --without 'clock,disk'] runs two
 * daemons, a Postgres, a partner whose market moves and a follower of the changes for that many minutes, with
 * disruptions drawn from the seed (CONTRIBUTING.md lists them). Exits with 1 if any promise was broken.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
    queues: { type: 'string', default: 'both' },
    without: { type: 'string', default: '' },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
const queues = values.queues === 'both' ? BACKENDS : BACKENDS.filter((name) => name === values.queues);
if (!(minutes > 0) || !Number.isInteger(seed) || queues.length === 0) {
  process.stderr.write(
    'expected --minutes above 0, --seed a whole number, --queues redis, postgres or both\n',
  );
  process.exit(78);
}

const without = values.without.split(',').filter((word) => word !== '');
const failures: string[] = [];
for (const backend of queues) {
  const options = { backend: backend satisfies Backend, minutes: minutes / queues.length, seed, without };
  const found = await soak(options, (text) => void process.stdout.write(`${text}\n`));
  failures.push(...found.map((text) => `queues in ${backend}: ${text}`));
}
for (const text of failures) process.stdout.write(`FAIL ${text}\n`);
process.stdout.write(
  `seed ${seed}: ${failures.length === 0 ? 'everything held' : `${failures.length} failures`}\n`,
);
process.exit(failures.length === 0 ? 0 : 1);
