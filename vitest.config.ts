import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'static',
          include: ['test/static/**/*.test.ts'],
        },
      },
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/static/**', 'test/**/*.{pg,e2e,timed}.test.ts'],
          // They leave nothing behind: loading everything anew for each file took a third of their time.
          isolate: false,
        },
      },
      {
        test: {
          name: 'pg',
          include: ['test/**/*.{pg,e2e}.test.ts'],
          globalSetup: ['test/globalSetup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 4,
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
