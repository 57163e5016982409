import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startVersion } from './server.ts';

/*
 * npm run test:postgres [-- 14 16] [test/store ...] runs the tests that use Postgres on each major version that
 * the daemon supports, or only on those given, and prints one line per version and one per failed test. Exits with
 * 1 if any test fails.
 */

/**
 * The newest release of each major that npm has for every platform of the embedded Postgres; 18 is the installed
 * one.
 */
const VERSIONS: Readonly<Record<string, string>> = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
};
const TESTS = ['store', 'migrations', 'doctor', 'security', 'follow', 'client', 'examples'].map(
  (name) => `test/${name}`,
);
const WHY_LINES = 30;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numFailedTestSuites: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/**
 * Returns lines that name what failed and why; for a failed property also the seed, the path and the
 * counter-example.
 */
function failures({ testResults }: Report): string[] {
  return testResults.flatMap(({ name, message, assertionResults }) => {
    const file = relative(ROOT, name);
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    if (failed.length === 0) return message === '' ? [] : [`  ${file}: ${message}`];
    return failed.map(({ fullName, failureMessages: [why = ''] }) => {
      const lines = why.split('\n').filter((each) => !/^\s+at /.test(each));
      return `  ${file}: ${fullName}: ${lines.slice(0, WHY_LINES).join('\n    ')}`;
    });
  });
}

/** Runs the tests on one version; resolves to the report, or to null if the run itself broke off. */
async function runOn(version: string, tests: readonly string[]): Promise<Report | null> {
  await using server = await startVersion(version);
  const file = join(server.folder, 'report.json');
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const options = ['run', '--reporter=json', `--outputFile=${file}`, ...tests];
  const child = spawn(process.execPath, [vitest, ...options], {
    cwd: ROOT,
    env: { ...process.env, TEST_POSTGRES_URL: server.url },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await once(child, 'exit');
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch {
    return null;
  }
}

const words = process.argv.slice(2);
const majors = words.filter((word) => /^\d+$/.test(word));
const tests = words.filter((word) => !majors.includes(word));
const unknown = majors.filter((major) => !Object.hasOwn(VERSIONS, major));
if (unknown.length > 0)
  throw new Error(`no version of ${unknown.join(', ')}: ${Object.keys(VERSIONS).join(', ')}`);
const say = (line: string) => process.stdout.write(`${line}\n`);

for (const major of majors.length > 0 ? majors : Object.keys(VERSIONS)) {
  const version = VERSIONS[major] ?? '';
  const report = await runOn(version, tests.length > 0 ? tests : TESTS);
  const passed = report !== null && report.numFailedTestSuites === 0 && report.numPassedTests > 0;
  if (!passed) process.exitCode = 1;
  const counts =
    report === null
      ? 'broke off'
      : `${report.numPassedTests} passed, ${report.numFailedTests} failed, ${report.numPendingTests} skipped`;
  say(`PostgreSQL ${version.replace(/\.0-.*$/, '')}: ${passed ? 'ok' : 'FAILED'}: ${counts}`);
  for (const line of report === null ? [] : failures(report)) say(line);
}
