import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LISTS } from './all.ts';
import { type Mutant, planted } from './mutant.ts';

/*
 * npm run test:mutants [-- holes F1 src/pace ...]
 * Plants each fault in a copy of the repository, those of the named lists, or whose description or file has one of the words, if any are given, and
 * runs the tests that are to notice: those that need no server first. Before that they must pass without any fault. The last
 * line has the share that was noticed; exit 1 where that is too small.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Far longer than these tests take. One that waits for what a fault keeps from coming has noticed it. */
const TEST_TIMEOUT_MS = 60_000;
/** A fault that has a test compute for ever is beyond the test's own timeout. */
const RUN_TIMEOUT_MS = 600_000;
const LEAST_NOTICED = 0.95;

interface Verdict {
  readonly is: 'caught' | 'MISSED' | 'BROKEN';
  /** The test that failed first. */
  readonly by: string;
}

/** A copy of what is tracked, or could be; tests start the program of the tree that they are in. */
function copyTree(): string {
  const tree = mkdtempSync(join(tmpdir(), 'mutants-'));
  const { stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const isThere = (file: string) => file !== '' && existsSync(join(ROOT, file));
  for (const file of stdout.split('\0').filter(isThere))
    cpSync(join(ROOT, file), join(tree, file), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  return tree;
}

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function firstFailed(tree: string, { testResults }: Report): string | null {
  for (const { name, assertionResults } of testResults) {
    const failed = assertionResults.find(({ status }) => status === 'failed');
    if (failed !== undefined) return `${relative(tree, name)}: ${failed.fullName}`;
  }
  return null;
}

/** Runs test files in the tree up to the first failure; null where the run itself broke off, 'endless' where it was killed. */
async function runTests(tree: string, tests: readonly string[]): Promise<Report | 'endless' | null> {
  const file = join(tree, 'report.json');
  const options = ['--bail=1', `--testTimeout=${TEST_TIMEOUT_MS}`, '--reporter=json', `--outputFile=${file}`];
  rmSync(file, { force: true });
  const vitest = join(tree, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', ...options, ...tests], {
    cwd: tree,
    stdio: 'ignore',
    // A group of its own, so that its workers end with it.
    detached: true,
  });
  const timer = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), RUN_TIMEOUT_MS);
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
  clearTimeout(timer);
  if (signal !== null) return 'endless';
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch {
    return null;
  }
}

const needsServer = (file: string) => /\.(?:pg|e2e|timed)\.test\.ts$/.test(file);

async function judgeBy(tree: string, tests: readonly string[]): Promise<Verdict> {
  if (tests.length === 0) return { is: 'MISSED', by: '' };
  const report = await runTests(tree, tests);
  if (report === 'endless') return { is: 'caught', by: 'a test that does not end' };
  // A file that cannot even be loaded proves nothing of its tests.
  if (report === null || report.numPassedTests + report.numFailedTests === 0) return { is: 'BROKEN', by: '' };
  const by = firstFailed(tree, report);
  return by === null ? { is: 'MISSED', by: '' } : { is: 'caught', by };
}

async function judge(tree: string, mutant: Mutant): Promise<Verdict> {
  const path = join(tree, mutant.file);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, planted(mutant, text));
  try {
    const quick = await judgeBy(
      tree,
      mutant.tests.filter((file) => !needsServer(file)),
    );
    if (quick.is !== 'MISSED') return quick;
    return await judgeBy(tree, mutant.tests.filter(needsServer));
  } finally {
    writeFileSync(path, text);
  }
}

const words = process.argv.slice(2);
const mutants = Object.entries(LISTS).flatMap(([list, all]) =>
  all.filter(
    ({ breaks, file }) =>
      words.length === 0 ||
      words.some((word) => word === list || breaks.includes(word) || file.includes(word)),
  ),
);
if (mutants.length === 0) throw new Error(`no fault has any of these words: ${words.join(', ')}`);
const trees = Array.from({ length: Math.min(availableParallelism(), mutants.length) }, copyTree);
const say = (line: string) => process.stdout.write(`${line}\n`);

try {
  const tests = [...new Set(mutants.flatMap((mutant) => mutant.tests))];
  say(`${mutants.length} faults, ${tests.length} test files; first without any fault`);
  const sound = await runTests(trees[0] as string, tests);
  if (sound === null || sound === 'endless' || sound.numPassedTests === 0)
    throw new Error('the tests do not run');
  if (sound.numFailedTests > 0)
    throw new Error(`without any fault a test fails: ${firstFailed(trees[0] as string, sound)}`);
  const verdicts: Verdict[] = [];
  const left = mutants.values();
  const work = async (tree: string) => {
    for (const mutant of left) {
      const verdict = await judge(tree, mutant);
      verdicts.push(verdict);
      say(`${verdict.is} ${mutant.breaks} (${mutant.file})\n       ${verdict.by}`);
    }
  };
  await Promise.all(trees.map(work));
  const caught = verdicts.filter(({ is }) => is === 'caught').length;
  const share = caught / mutants.length;
  say(`${caught} of ${mutants.length} faults were noticed: ${(100 * share).toFixed(1)} %`);
  if (share < LEAST_NOTICED) process.exitCode = 1;
} finally {
  for (const tree of trees) rmSync(tree, { recursive: true, force: true });
}
