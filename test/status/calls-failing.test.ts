import { expect, test } from 'vitest';
import { judgeHealth as judge } from '../../src/status/health.ts';
import type { Lacking } from '../../src/store/setup/privileges.ts';
import { CASES, factsOf } from './cases.ts';

test('calls that read no SKU blame the configured list name, unless that name has worked before', () => {
  const facts = factsOf(CASES.healthy);
  const tasks = facts.tasks.map((one) =>
    one.task === 'reprice' ? { ...one, outcome: 'no-skus-read' } : one,
  );
  const textOf = (answeredSeconds: number | null) =>
    judge({ ...facts, tasks, failedCalls: 1, idle: { answeredSeconds, dueSeconds: 30 } }).reasons[0]?.text;
  expect(textOf(null)).toContain('PARTNER_BULK_BODY_KEY is not the name it expects');
  expect(textOf(3600)).toContain('reads no SKU from bulk calls, though it did 60m ago; it is retried');
});

/** Returns the text for a mirror whose last `faults` calls since a stored answer ended with this fault. */
function saidOf(fault: string, faults: number, lacking: Lacking[] = []): string | undefined {
  const facts = factsOf(CASES.healthy);
  const tasks = facts.tasks.map((one) =>
    one.task === 'reprice' ? { ...one, progress: { fault, faults } } : one,
  );
  const { state, reasons } = judge({ ...facts, tasks, lacking });
  expect(state).toBe(reasons.length === 0 ? 'healthy' : 'degraded');
  expect(reasons.every(({ code }) => code === 'calls-failing')).toBe(true);
  return reasons[0]?.text;
}

const NO_SELECT: Lacking[] = [{ kind: 'table', name: 'catalog.products', privileges: ['SELECT'] }];

test('calls whose statements Postgres rejects are reported from the second on, with its SQLSTATE', () => {
  expect(saidOf('42703', 1)).toBeUndefined();
  expect(saidOf('42703', 2)).toMatch(/^Postgres refuses statements .*SQLSTATE 42703, 2 times.*`job\.failed`/);
  expect(saidOf('42703', 2, NO_SELECT)).not.toContain('lacks');
  expect(saidOf('defect', 3)).toMatch(/^bulk calls are failing for an error of the daemon's own \(3 times\)/);
});

test('the text names the privilege that the role lacks, or else where to look for it', () => {
  expect(saidOf('42501', 2, NO_SELECT)).toMatch(
    /42501.*: the mirror's role lacks SELECT on catalog\.products; `catalog-mirror doctor` has the GRANT/,
  );
  expect(saidOf('42501', 2)).toMatch(/SQLSTATE 42501.*`job\.failed`/);
});

test('rows that Postgres rejects for a privilege: the text names it, or says whose trigger lacks it', () => {
  const notStored = { skus: 1, last: 'S1', sample: 'SQLSTATE 42501, by a privilege that is lacking' };
  const textOf = (lacksPrivilege: boolean, lacking: Lacking[]) =>
    judge({ ...factsOf(CASES.healthy), notStored: { ...notStored, lacksPrivilege }, lacking }).reasons[0]
      ?.text;
  expect(textOf(true, NO_SELECT)).toMatch(
    /lacking; the mirror's role lacks SELECT on catalog\.products; .*doctor/,
  );
  expect(textOf(true, [])).toContain('the function of a trigger lacks a privilege');
  expect(textOf(false, NO_SELECT)).toMatch(
    /find the constraint or trigger in Postgres that rejects the rows/,
  );
});

test('rejected answers are reported after four in a row, with their cause', () => {
  const facts = factsOf(CASES.healthy);
  const tasks = facts.tasks.map((one) => (one.task === 'reprice' ? { ...one, outcome: 'not-stored' } : one));
  const reasons = (failedCalls: number, lacking: Lacking[] = []) =>
    judge({ ...facts, tasks, failedCalls, lacking }).reasons;
  expect(reasons(3, NO_SELECT)).toEqual([]);
  expect(reasons(4)[0]?.text).toMatch(
    /^Postgres rejects the answers of bulk calls \(4 in a row\); it is retried/,
  );
  expect(reasons(4, NO_SELECT)[0]?.text).toMatch(
    /\(4 in a row\): the mirror's role lacks SELECT on .*the GRANT/,
  );
});
