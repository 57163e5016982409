import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

type Tests = readonly { status: string; failureMessages: string[] }[];

/** What the counts say of runs with these tests, each with what it failed with. */
function counted(...runs: readonly Tests[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'counts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = runs.map((tests, at) => {
    const file = join(folder, `report-${at}.json`);
    writeFileSync(file, JSON.stringify(reportOf(tests)));
    return file;
  });
  return execFileSync(process.execPath, ['.ci/counts.ts', ...files], { encoding: 'utf8' })
    .trim()
    .split('\n');
}

function reportOf(tests: Tests): object {
  const of = (status: string) => tests.filter((each) => each.status === status).length;
  const assertionResults = tests.map((each, at) => ({ fullName: `test ${at}`, ...each }));
  const counts = {
    numPassedTests: of('passed'),
    numFailedTests: of('failed'),
    numPendingTests: of('pending'),
  };
  return { ...counts, testResults: [{ name: 'a.test.ts', assertionResults }] };
}

const passed = { status: 'passed', failureMessages: [] };

test('a run whose tests pass says so, and how many were left out', () => {
  expect(counted([passed, passed, { status: 'pending', failureMessages: [] }])).toEqual([
    '2 passed, 0 failed, 1 skipped',
  ]);
});

test('of two runs the last line has the counts, whichever of them fails; what failed is named before it', () => {
  const failed = { status: 'failed', failureMessages: ['Error: always\n    at a line', 'Error: again'] };
  const named = (at: number) => [`failed: a.test.ts: test ${at}: Error: always`, '      at a line'];
  expect(counted([passed, failed], [passed])).toEqual([...named(1), '2 passed, 1 failed, 0 skipped']);
  expect(counted([passed], [failed, passed])).toEqual([...named(0), '2 passed, 1 failed, 0 skipped']);
});
