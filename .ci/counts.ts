import { readFileSync } from 'node:fs';

/*
 * node .ci/counts.ts REPORT...
 * Prints what passed only when it was tried again, which is a race to be found, and as the last line the counts of the runs together. A
 * REPORT is what vitest's JSON reporter has written; where there is none the run has failed.
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

const reports = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, 'utf8')) as Report);
const sum = (of: (report: Report) => number) => reports.reduce((total, report) => total + of(report), 0);
const again = reports
  .flatMap(({ testResults }) => testResults)
  .flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status, failureMessages }) => status === 'passed' && failureMessages.length > 0)
      .map(({ fullName, failureMessages }) => `${name}: ${fullName}: ${failureMessages[0]?.split('\n')[0]}`),
  );
for (const line of again) process.stdout.write(`tried again: ${line}\n`);
const counts = [
  `${sum(({ numPassedTests }) => numPassedTests)} passed`,
  `${sum(({ numFailedTests }) => numFailedTests)} failed`,
  `${sum(({ numPendingTests }) => numPendingTests)} skipped`,
  ...(again.length > 0 ? [`${again.length} of the passed only at the second try`] : []),
];
process.stdout.write(`${counts.join(', ')}\n`);
