import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { roomForFiles } from './test/support/room.ts';

// For all workers.
process.env['TMPDIR'] ??= roomForFiles();

/** More than there are processors in most machines: many tests wait most of their time. */
const WORKERS = 4;

/** Simulations make garbage by the gigabyte: a larger young generation is collected less often, for a twentieth of the time. */
const ROOMY = ['--max-semi-space-size=64'];

/** Files that take longest: begun last, one of them would go on alone while the other workers have nothing left to do. */
const LONGEST = [
  'test/sim/two-daemons',
  'test/sim/one-daemon',
  'test/sim/day',
  'test/sim/weather',
  'test/process/failpoints',
  'test/hostile/manifest-files',
  'test/bench/freshness',
  'test/sync/capacity',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((name) => moduleId.includes(name));
      return at === -1 ? LONGEST.length : at;
    };
    // oxlint-disable-next-line unicorn/no-array-sort -- a sequencer is no array
    const usual = await super.sort(files);
    return usual.toSorted((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'static',
          include: ['test/static/**/*.test.ts'],
          maxWorkers: WORKERS,
        },
      },
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/static/**', 'test/**/*.{pg,e2e,timed}.test.ts'],
          // They leave nothing behind: loading everything anew for each file took a third of their time.
          isolate: false,
          // Simulations of days compute for seconds, longer on a busy machine; no unit test waits.
          testTimeout: 120_000,
          maxWorkers: WORKERS,
          execArgv: ROOMY,
        },
      },
      {
        test: {
          name: 'pg',
          include: ['test/**/*.{pg,e2e}.test.ts'],
          globalSetup: ['test/globalSetup.ts'],
          // As above: nothing is kept between files but loaded modules, and each file has a database of its own.
          isolate: false,
          // Beyond what `eventually` waits for, so that it is the one that says what did not come.
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: WORKERS,
          execArgv: ROOMY,
        },
      },
      {
        // What is judged by the clock of the wall comes after all others. It waits most of its time: two files at once leave room.
        test: {
          name: 'timed',
          include: ['test/**/*.timed.test.ts'],
          globalSetup: ['test/globalSetup.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
