import { expect, test } from 'vitest';
import { judgeHealth as judge } from '../../src/status/health.ts';
import type { TaskName } from '../../src/store/ledger/tasks.ts';
import { CASES, factsOf } from './cases.ts';

const reasonOf = (name: TaskName, outcome: string, baseline = true) => {
  const facts = factsOf(CASES.healthy);
  const tasks = facts.tasks.map((one) => (one.task === name ? { ...one, failures: 1, outcome } : one));
  const sync = baseline ? facts.sync : { ...facts.sync, manifestAppliedAt: null };
  return judge({ ...facts, sync, tasks }).reasons[0];
};

test.each<TaskName>(['manifest', 'delta', 'maintenance'])(
  'if the task %s fails because of an operator’s setting, the reason names it and the remedy',
  (name) => {
    const reason = reasonOf(name, 'refused-by-trigger');
    expect(reason?.text).toContain(
      "failed once (refused-by-trigger: a trigger that is not the mirror's refuses",
    );
    expect(reason?.hint).toContain('event trigger');
    expect(reasonOf(name, 'fault')?.text).toContain('failed once (fault)');
  },
);

test('a failing manifest without a baseline names the setting and the remedy, too', () => {
  expect(reasonOf('manifest', 'temp-file-limit', false)).toMatchObject({
    code: 'no-baseline',
    text: expect.stringContaining('temp_file_limit of Postgres is too low') as string,
    hint: expect.stringContaining('ALTER ROLE … SET temp_file_limit') as string,
  });
});
