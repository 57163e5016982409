import { expect, test } from 'vitest';
import { judgeHealth } from '../../src/status/health.ts';
import type { StatementAtWork } from '../../src/store/connection/at-work.ts';
import { CASES, factsOf } from './cases.ts';

const STATEMENT: StatementAtWork = {
  pid: 42,
  seconds: 240,
  waitsFor: null,
  blockers: [],
  tables: [],
  attached: [],
};

test.each<[Partial<StatementAtWork>, string]>([
  [
    {
      tables: ['public.orders'],
      attached: ['foreign key fk of public.orders to catalog.skus, without an index on its columns'],
    },
    'it is at public.orders; what it writes has foreign key fk of public.orders to catalog.skus, without an index on its columns',
  ],
  [
    { blockers: ['process 7 of Postgres (role bi)'], attached: ['trigger slow on catalog.skus'] },
    'it waits for process 7 of Postgres (role bi); what it writes has trigger slow on catalog.skus',
  ],
])('a slow statement says what it is doing: %j', (more, what) => {
  const slowStatements = [{ ...STATEMENT, ...more }];
  expect(judgeHealth({ ...factsOf(CASES.healthy), slowStatements }).reasons).toEqual([
    {
      code: 'slow-statement',
      level: 'degraded',
      text: `a statement of the mirror (process 42 of Postgres) has run for 4m: ${what}; it is waited for; give the foreign key an index on its columns, or make the trigger quick`,
      hint: 'it is waited for; give the foreign key an index on its columns, or make the trigger quick',
    },
  ]);
});

test('a statement whose COMMIT waits for a synchronous standby says so, with a remedy', () => {
  const slowStatements = [
    { ...STATEMENT, waitsFor: 'IPC: SyncRep', attached: ['trigger quick on catalog.skus'] },
  ];
  const [reason] = judgeHealth({ ...factsOf(CASES.healthy), slowStatements }).reasons;
  expect(reason).toMatchObject({ code: 'slow-statement', level: 'degraded' });
  expect(reason?.text).toContain(
    'its COMMIT waits for a synchronous standby of synchronous_standby_names that does not answer',
  );
  expect(reason?.text).not.toContain('trigger');
  expect(reason?.hint).toContain('bring the standby back');
});
