import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type ExpectStatic, expect, onTestFinished, vi } from 'vitest';
import { NODE_FLAGS } from '../../src/launch.ts';
import type { Failpoint } from '../../src/lib/failpoint.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { sqlState } from '../../src/store/connection/sql-errors.ts';
import { Hopeless, PATIENCE_MS, eventually } from './eventually.ts';
import type { LogLine } from './stack.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const ARM = new URL('arm-failpoint.ts', import.meta.url).href;
/** Hundreds of processes compile the same files: the first one to end saves the result for all others. */
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url));
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// Each of these tests starts several processes, so only a few run at once.
vi.setConfig({ maxConcurrency: 3 });

export type Env = Readonly<Record<string, string | undefined>>;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** catalog-mirror in its own process: what it prints, and how to signal it. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Lines so far. */
  readonly stdout: readonly string[];
  readonly stderr: readonly string[];
  readonly exited: Promise<Exit>;
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal and waits for the end; `ms` is how long that took. */
  readonly end: (signal: NodeJS.Signals) => Promise<Exit & { readonly ms: number }>;
  /** Returns the log lines with this event so far. */
  logged(event: string): LogLine[];
  /** Waits for the first log line with this event. */
  until(event: string, within?: number): Promise<LogLine>;
  /** GETs a path of the daemon's own HTTP port, once it listens. */
  get(path: string): Promise<{ readonly status: number; readonly body: string }>;
}

export interface StartOptions {
  readonly cwd?: string;
  /** The user that runs it, if the tests run as root. */
  readonly uid?: number;
  readonly gid?: number;
  /** An installed executable to start instead of the source; without failpoint and preload. */
  readonly bin?: string;
  /** A module to load before the program. */
  readonly preload?: string;
  /** Ends itself by SIGKILL when it passes this point for the n-th time: name and n. */
  readonly failpoint?: readonly [Failpoint, number];
}

/**
 * Starts the program with only these arguments and this environment: of the tests' own, it gets nothing but PATH.
 */
export function startProgram(args: readonly string[], env: Env = {}, options: StartOptions = {}): Program {
  const { bin, failpoint, preload, ...rest } = options;
  const modules = [...(failpoint === undefined ? [] : [ARM]), ...(preload === undefined ? [] : [preload])];
  const imports = modules.flatMap((module) => ['--import', module]);
  const [file, first] =
    bin === undefined ? [process.execPath, [...NODE_FLAGS, ...imports, '--', MAIN]] : [bin, []];
  const child = spawn(file, [...first, ...args], {
    cwd: ROOT,
    ...rest,
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: CACHE, ...env, FAILPOINT: failpoint?.join(':') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const reap = () => void child.kill('SIGKILL');
  process.once('exit', reap);
  const stdout: string[] = [];
  const stderr: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => stdout.push(line));
  createInterface({ input: child.stderr }).on('line', (line) => stderr.push(line));
  const exited = once(child, 'close').then(([code, signal]): Exit => {
    process.off('exit', reap);
    return { code, signal };
  });
  const parsed: LogLine[] = [];
  let read = 0;
  /** Returns matching lines; each line is parsed only once, however often tests ask. */
  function logged(event: string): LogLine[] {
    for (; read < stdout.length; read += 1) {
      const line = stdout[read] ?? '';
      if (line.startsWith('{')) parsed.push(JSON.parse(line) as LogLine);
    }
    return parsed.filter((line) => line.event === event);
  }
  const program: Program = {
    pid: child.pid ?? 0,
    stdout,
    stderr,
    exited,
    logged,
    signal: (signal) => void child.kill(signal),
    async end(signal) {
      const startedAt = performance.now();
      child.kill(signal);
      return { ...(await exited), ms: performance.now() - startedAt };
    },
    until(event, within = PATIENCE_MS) {
      const ended = () => child.exitCode !== null || child.signalCode !== null;
      const said = () => [...stdout, ...stderr].slice(-15).join('\n');
      const first = () => {
        const isOver = ended();
        const [line] = logged(event);
        if (line !== undefined) return line;
        const text = `no ${event} from ${args.join(' ')}: ${said()}`;
        throw isOver ? new Hopeless(text) : new Error(text);
      };
      return eventually(first, { what: event, within });
    },
    async get(path) {
      const { port } = await program.until('app.started');
      const response = await fetch(`http://127.0.0.1:${String(port)}${path}`);
      return { status: response.status, body: await response.text() };
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
  return program;
}

export interface Ran extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the program to its end; a run that takes too long is killed, as its signal shows. */
export async function runProgram(
  args: readonly string[],
  env: Env = {},
  options: StartOptions & { readonly timeoutMs?: number } = {},
): Promise<Ran> {
  const { timeoutMs = PATIENCE_MS, ...rest } = options;
  await using program = startProgram(args, env, rest);
  const timer = setTimeout(() => program.signal('SIGKILL'), timeoutMs);
  const exit = await program.exited;
  clearTimeout(timer);
  return { ...exit, stdout: program.stdout.join('\n'), stderr: program.stderr.join('\n') };
}

/** Creates a folder that every user may pass through, deleted after the test. */
export async function temporaryFolder(onEnd: typeof onTestFinished = onTestFinished): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-process-'));
  await chmod(folder, 0o711);
  onEnd(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** SQL: the first fill is over, and what waited for a second answer was answered. */
export const FILLED = `(select manifest_applied_at is not null from catalog_internal.sync)
  and not exists (select from catalog_internal.due 
    where due_at <= now() and not (doubt is not null and claim is null and deferrals = 0 and failures = 0 and coalesce(held_until > now(), false)))`;

/** Returns whether an SQL condition holds; false also while the tables do not exist yet. */
export async function holds(sql: Sql, condition: string): Promise<boolean> {
  try {
    const [row] = await sql.unsafe<{ holds: boolean | null }[]>(`select (${condition}) as holds`);
    return row?.holds === true;
  } catch (error) {
    if (sqlState(error) === '42P01' || sqlState(error) === '3F000') return false;
    throw error;
  }
}

/** The time that process managers usually grant. */
export const GRANTED_MS = 10_000;
/** For a busy machine; far below the time that the tests make the daemon wait for. */
const BUSY_MS = 6 * GRANTED_MS;

/** Expects a graceful end: exit code 0, in time. Timed tests check that it is in time for process managers. */
export function expectStopped(
  stopped: Awaited<ReturnType<Program['end']>>,
  check: ExpectStatic = expect,
  withinMs = BUSY_MS,
): void {
  check({ code: stopped.code, signal: stopped.signal, inTime: stopped.ms < withinMs }).toEqual({
    code: 0,
    signal: null,
    inTime: true,
  });
}

/**
 * `--timeout` values to try one after the other, if what is pending at the end of a run depends on the machine's
 * speed.
 */
const TIMEOUTS = ['4s', '16s', '60s'];

/** Runs a `run --once` that cannot finish, with as much time as the machine needs until only `pending` is left. */
export async function runUntilOnlyPending(env: Env, pending: string): Promise<Ran> {
  let ran: Ran | undefined;
  for (const timeout of TIMEOUTS) {
    ran = await runProgram(['run', '--once', '--timeout', timeout], env, { timeoutMs: 150_000 });
    if (ran.stderr === `timed out; still pending: ${pending}`) return ran;
  }
  return ran as Ran;
}
