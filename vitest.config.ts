import { defineConfig } from 'vitest/config';

/** More than there are processors in most machines: many tests wait most of their time. */
const WORKERS = 4;

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
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
