import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LISTS } from './all.ts';
import { Judge } from './judge.ts';
import { type Mutant, placed, planted, readMigrations } from './mutant.ts';

/*
 * npm run test:mutants [-- holes F1 src/pace ...] plants each fault in a copy of the repository and runs the tests
 * that should notice it, in the order of their list, those without a server first. If words are given, it plants
 * only the faults of these lists, or whose description or file contains one of the words. Before that, the tests
 * must pass without any fault. The last line gives the share that was noticed; exits with 1 if that is too small,
 * or if a fault keeps tests from running at all.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** A fault that makes a test compute for ever defeats the test's own timeout. */
const RUN_TIMEOUT_MS = 600_000;
const SOUND_TIMEOUT_MS = 3_600_000;
const MIN_NOTICED = 0.95;

interface Verdict {
  readonly is: 'caught' | 'MISSED' | 'BROKEN';
  /** The test that failed first. */
  readonly by: string;
}

/** Copies all files that are tracked or could be; tests start the program of their own tree. */
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

const needsServer = (file: string) => /\.(?:pg|e2e|timed)\.test\.ts$/.test(file);
/** The tests' databases are copies of one that was migrated when the first of them was created. */
const isMigration = (file: string) => file.startsWith('drizzle/');

async function judgeBy(judge: Judge, changed: string, tests: readonly string[]): Promise<Verdict> {
  if (tests.length === 0) return { is: 'MISSED', by: '' };
  const ran = await judge.run({ changed: [changed], tests }, RUN_TIMEOUT_MS);
  if (ran === null) return { is: 'caught', by: 'a test that does not end' };
  // A file that cannot even be loaded proves nothing about its tests.
  if (ran.passed + ran.failed === 0) return { is: 'BROKEN', by: ran.broken ?? '' };
  return ran.first === null ? { is: 'MISSED', by: '' } : { is: 'caught', by: ran.first };
}

async function judgeMutant(tree: string, judge: Judge, listed: Mutant): Promise<Verdict> {
  const mutant = placed(listed, readMigrations(tree));
  const path = join(tree, mutant.file);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, planted(mutant, text));
  if (isMigration(mutant.file)) await judge.close();
  try {
    // Tests without a server run together, the others one by one, because each costs more than starting the next.
    const quick = mutant.tests.filter((file) => !needsServer(file));
    const rounds = [quick, ...mutant.tests.filter(needsServer).map((file) => [file])];
    for (const tests of rounds) {
      const verdict = await judgeBy(judge, path, tests);
      if (verdict.is !== 'MISSED') return verdict;
    }
    return { is: 'MISSED', by: '' };
  } finally {
    writeFileSync(path, text);
    if (isMigration(mutant.file)) await judge.close();
    else await judge.run({ changed: [path], tests: [] }, RUN_TIMEOUT_MS);
  }
}

const words = process.argv.slice(2);
const isMeant = (word: string, list: string, { breaks, file }: Mutant) =>
  word in LISTS ? word === list : breaks.includes(word) || file.includes(word);
const mutants = Object.entries(LISTS).flatMap(([list, all]) =>
  all.filter((mutant) => words.length === 0 || words.some((word) => isMeant(word, list, mutant))),
);
if (mutants.length === 0) throw new Error(`no fault has any of these words: ${words.join(', ')}`);
const trees = Array.from({ length: Math.min(availableParallelism(), mutants.length) }, copyTree);
const judges = new Map(trees.map((tree) => [tree, new Judge(tree)]));
const say = (line: string) => process.stdout.write(`${line}\n`);

try {
  const tests = [...new Set(mutants.flatMap((mutant) => mutant.tests))];
  say(`${mutants.length} faults, ${tests.length} test files; first without any fault`);
  const [anyJudge] = judges.values();
  const sound = await (anyJudge as Judge).run({ changed: [], tests }, SOUND_TIMEOUT_MS);
  if (sound === null || sound.passed === 0) throw new Error('the tests do not run', { cause: sound?.broken });
  if (sound.first !== null) throw new Error(`without any fault a test fails: ${sound.first}`);
  const verdicts: Verdict[] = [];
  const left = mutants.values();
  const work = async ([tree, judge]: [string, Judge]) => {
    for (const mutant of left) {
      const verdict = await judgeMutant(tree, judge, mutant);
      verdicts.push(verdict);
      say(`${verdict.is} ${mutant.breaks} (${mutant.file})\n       ${verdict.by}`);
    }
  };
  await Promise.all([...judges].map(work));
  const caught = verdicts.filter(({ is }) => is === 'caught').length;
  const share = caught / mutants.length;
  say(`${caught} of ${mutants.length} faults were noticed: ${(100 * share).toFixed(1)} %`);
  if (share < MIN_NOTICED || verdicts.some(({ is }) => is === 'BROKEN')) process.exitCode = 1;
} finally {
  await Promise.all([...judges.values()].map((judge) => judge.close()));
  for (const tree of trees) rmSync(tree, { recursive: true, force: true });
}
