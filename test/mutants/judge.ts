import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createVitest, type Vitest } from 'vitest/node';

/*
 * Runs tests in a tree repeatedly, in its own process: what they share (a Postgres with a migrated template)
 * starts only once, and files are compiled only once.
 */

const SELF = fileURLToPath(import.meta.url);
/** Far longer than these tests take. A test that waits for what a fault prevents has noticed it. */
const TEST_TIMEOUT_MS = 60_000;

export interface Ran {
  readonly passed: number;
  readonly failed: number;
  /** The test that failed first, with its file. */
  readonly first: string | null;
  /** Why no test could run: what they share did not start. */
  readonly broken?: string;
}

/** An order to the process: the files that have changed, and the test files to run up to the first failure. */
interface Order {
  readonly changed: readonly string[];
  readonly tests: readonly string[];
}

async function run(vitest: Vitest, { changed, tests }: Order): Promise<Ran> {
  for (const file of changed) vitest.invalidateFile(file);
  // An empty list would run all files.
  if (tests.length === 0) return { passed: 0, failed: 0, first: null };
  const found = await vitest.globTestSpecifications([...tests]);
  // If a file also belongs to the long tests with more histories, only the shorter form runs.
  const usual = new Set(
    found.filter(({ project }) => project.name !== 'long').map(({ moduleId }) => moduleId),
  );
  const specifications = found.filter(
    ({ moduleId, project }) => project.name !== 'long' || !usual.has(moduleId),
  );
  const { testModules } = await vitest.runTestSpecifications(specifications);
  // This contains the modules of all runs so far, with their latest results.
  const asked = new Set(specifications.map(({ moduleId }) => moduleId));
  const cases = testModules
    .filter(({ moduleId }) => asked.has(moduleId))
    .flatMap((module) => [...module.children.allTests()]);
  const ofState = (state: string) => cases.filter((test) => test.result().state === state);
  const [first] = ofState('failed');
  return {
    passed: ofState('passed').length,
    failed: ofState('failed').length,
    first:
      first === undefined ? null : `${relative(process.cwd(), first.module.moduleId)}: ${first.fullName}`,
  };
}

async function serve(): Promise<void> {
  const vitest = await createVitest('test', {
    root: process.cwd(),
    watch: false,
    bail: 1,
    testTimeout: TEST_TIMEOUT_MS,
    reporters: [{}],
  });
  process.on('message', (order: Order) => {
    void run(vitest, order).then(
      (ran) => process.send?.(ran),
      (error: unknown) => process.send?.({ passed: 0, failed: 0, first: null, broken: String(error) }),
    );
  });
  process.on('disconnect', () => void vitest.close().finally(() => process.exit(0)));
  process.send?.('ready');
}

/** Runs tests of a tree until it is closed. */
export class Judge {
  readonly #tree: string;
  #child: ChildProcess | null = null;

  constructor(tree: string) {
    this.#tree = tree;
  }

  /** Runs test files up to the first failure; returns null if they did not end in time and were killed. */
  async run(order: Order, withinMs: number): Promise<Ran | null> {
    const child = (this.#child ??= await this.#start());
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      process.kill(-(child.pid as number), 'SIGKILL');
    }, withinMs);
    const ended = new AbortController();
    const { signal } = ended;
    const exited = once(child, 'exit', { signal }).then((): null => null);
    const answered = once(child, 'message', { signal }).then(([ran]) => ran as Ran);
    child.send(order);
    try {
      const ran = await Promise.race([answered, exited]);
      if (ran === null) this.#child = null;
      if (ran === null && !isLate) throw new Error('the test runner has ended');
      return ran;
    } finally {
      clearTimeout(timer);
      for (const left of [answered, exited]) left.catch(() => undefined);
      ended.abort();
    }
  }

  /** Ends the process, including what its tests share; the next run starts a new one. */
  async close(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.disconnect();
    await exited;
  }

  async #start(): Promise<ChildProcess> {
    // Its own process group, so that its workers end with it.
    const child = fork(SELF, ['serve'], { cwd: this.#tree, stdio: 'ignore', detached: true });
    await once(child, 'message');
    return child;
  }
}

if (process.argv[1] === SELF && process.argv[2] === 'serve') await serve();
