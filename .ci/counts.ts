import { readFileSync } from 'node:fs';

/*
 * node .ci/counts.ts REPORT
 * Prints what passed only when it was tried again, which is a race to be found, and as the last line the counts of a run. REPORT is
 * what vitest's JSON reporter has written; where there is none the run has failed.
 */

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

const report = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as Report;
const again = report.testResults.flatMap(({ name, assertionResults }) =>
  assertionResults
    .filter(({ status, failureMessages }) => status === 'passed' && failureMessages.length > 0)
    .map(({ fullName, failureMessages }) => `${name}: ${fullName}: ${failureMessages[0]?.split('\n')[0]}`),
);
for (const line of again) process.stdout.write(`tried again: ${line}\n`);
const counts = [
  `${report.numPassedTests} passed`,
  `${report.numFailedTests} failed`,
  `${report.numPendingTests} skipped`,
  ...(again.length > 0 ? [`${again.length} of the passed only at the second try`] : []),
];
process.stdout.write(`${counts.join(', ')}\n`);
