import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

type Tests = readonly { status: string; failureMessages: string[] }[];

/** Returns what the counts say about runs with these tests and their failures. */
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

test('a passing run gives its counts, including skipped tests', () => {
  expect(counted([passed, passed, { status: 'pending', failureMessages: [] }])).toEqual([
    '2 passed, 0 failed, 1 skipped',
  ]);
});

test('the last line counts both runs, and failures are named before it, whichever run failed', () => {
  const failed = { status: 'failed', failureMessages: ['Error: always\n    at a line', 'Error: again'] };
  const named = (at: number) => [`failed: a.test.ts: test ${at}: Error: always`, '      at a line'];
  expect(counted([passed, failed], [passed])).toEqual([...named(1), '2 passed, 1 failed, 0 skipped']);
  expect(counted([passed], [failed, passed])).toEqual([...named(0), '2 passed, 1 failed, 0 skipped']);
});
