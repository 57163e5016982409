import { defineConfig } from 'vitest/config';

/** More than there are processors in most machines: many tests wait most of their time. */
const WORKERS = 3;

/**
 * Tests with processes and connections of their own are tried once more before they fail: on a machine with much else to do one
 * of thousands may miss its time. A broken promise fails both times; what only passes the second time is reported, and is
 * a race to be found.
 */
const RETRY = 1;

export default defineConfig({
  test: {
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
          testTimeout: 60_000,
          maxWorkers: WORKERS,
        },
      },
      {
        test: {
          name: 'pg',
          include: ['test/**/*.{pg,e2e}.test.ts'],
          globalSetup: ['test/globalSetup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          retry: RETRY,
          maxWorkers: WORKERS,
        },
      },
      {
        // What is judged by the clock of the wall has the machine to itself, after all others.
        test: {
          name: 'timed',
          include: ['test/**/*.timed.test.ts'],
          globalSetup: ['test/globalSetup.ts'],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          retry: RETRY,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
