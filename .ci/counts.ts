import { readFileSync } from 'node:fs';

/*
 * node .ci/counts.ts REPORT...
 * Prints what failed and why, and as the last line the counts of the runs together. A REPORT is what vitest's JSON reporter has written; where there is none the run has failed.
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
const results = reports.flatMap(({ testResults }) =>
  testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map((result) => ({ file: name, ...result })),
  ),
);
const failed = results.filter(({ status }) => status === 'failed');
/** The last lines of a run are what one sees of it: what happened is said here once more, by so many lines of the first message. */
const tell = (what: string, of: typeof results, lines: number) => {
  for (const { file, fullName, failureMessages } of of) {
    const message = failureMessages[0]?.split('\n').slice(0, lines).join('\n  ');
    process.stdout.write(`${what}: ${file}: ${fullName}: ${message}\n`);
  }
};
tell('failed', failed, 12);
const counts = [
  `${sum(({ numPassedTests }) => numPassedTests)} passed`,
  `${sum(({ numFailedTests }) => numFailedTests)} failed`,
  `${sum(({ numPendingTests }) => numPendingTests)} skipped`,
];
process.stdout.write(`${counts.join(', ')}\n`);
