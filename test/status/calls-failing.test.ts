import { expect, test } from 'vitest';
import { judgeHealth as judge } from '../../src/status/health.ts';
import { CASES, factsOf } from './cases.ts';

test('calls that read no SKU blame the name of their list, unless some were answered with it before', () => {
  const facts = factsOf(CASES.healthy);
  const tasks = facts.tasks.map((one) =>
    one.task === 'reprice' ? { ...one, outcome: 'no-skus-read' } : one,
  );
  const textOf = (answeredSeconds: number | null) =>
    judge({ ...facts, tasks, failedCalls: 1, idle: { answeredSeconds, dueSeconds: 30 } }).reasons[0]?.text;
  expect(textOf(null)).toContain('PARTNER_BULK_BODY_KEY is not the name it expects');
  expect(textOf(3600)).toContain('reads no SKU from bulk calls, though it did 60m ago; it is retried');
});
