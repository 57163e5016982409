import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import postgres from 'postgres';
import { onTestFinished } from 'vitest';
import { type ServiceUser, parsePasswd, runCommand } from '../../src/embedded/command.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { clusterProcesses, waitUntil } from '../../src/embedded/processes.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { PATIENCE_MS } from '../support/eventually.ts';

export const FAST = { fsync: 'off', shared_buffers: '16MB' };
export const isRoot = process.geteuid?.() === 0;
export const nobody: ServiceUser | undefined = parsePasswd(readFileSync('/etc/passwd', 'utf8')).get('nobody');

/** Creates a folder for the test that every user may pass through. Removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'embedded-e2e-'));
  await chmod(folder, 0o711);
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a server in this process, which is stopped after the test at the latest. */
export async function startHere(
  dataDir: string,
  options: Partial<Parameters<typeof startEmbeddedPostgres>[0]> = {},
): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, settings: FAST, ...options });
  onTestFinished(() => server.stop());
  return server;
}

/** Runs one statement on its own connection and returns its rows. */
export async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Waits until no Postgres process of the data directory is left. Resolves to false if some stay. */
export function allGone(dataDir: string): Promise<boolean> {
  return waitUntil(async () => (await clusterProcesses(dataDir)).length === 0, PATIENCE_MS, systemClock);
}

/** Returns the pids of the watchdogs of a data directory's servers. */
export async function watchdogsOf(dataDir: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(
    pids.map(async (pid) => [pid, await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')] as const),
  );
  const home = await realpath(dataDir);
  return commands
    .filter(([, command]) => command.endsWith(`catalog-mirror-watchdog\0${home}\0`))
    .map(([pid]) => pid);
}

/** A program in another process, whose output is read line by line: one JSON object each. */
export interface Program {
  child: ChildProcess;
  pid: number;
  /** Returns the next line. Rejects if the program ends without one. */
  next(): Promise<Record<string, unknown>>;
  /** Resolves to the exit code, or to null after a signal. */
  exited: Promise<number | null>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

const PRELUDE = `
import { startEmbeddedPostgres } from ${JSON.stringify(new URL('../../src/embedded/postgres.ts', import.meta.url).href)};
import { prepareBinaries } from ${JSON.stringify(new URL('../../src/embedded/binaries.ts', import.meta.url).href)};
import { createRequire } from 'node:module';
const postgres = createRequire(${JSON.stringify(import.meta.url)})('postgres');
const say = (line) => process.stdout.write(JSON.stringify(line) + '\\n');
const settings = ${JSON.stringify(FAST)};
const dataDir = process.argv[1];
const complain = (error) => say({ kind: error.kind, message: error.message, hint: error.hint });
`;

/** Starts the server, prints its URL and pids, and keeps running, like a daemon. */
export const OWNER = `
try {
  const log = (event, detail) => { if (event === 'embedded.started') say({ ...detail, owner: process.pid }); };
  const server = await startEmbeddedPostgres({ dataDir, settings, log });
  say({ url: server.url });
  setInterval(() => {}, 1_000_000);
} catch (error) { complain(error); }
`;

/** Runs a program (after PRELUDE) in its own Node and process group, as `account` if one is given. */
export function run(program: string, dataDir: string, account: ServiceUser | null = null): Program {
  const args = ['--input-type=module', '--eval', PRELUDE + program, dataDir];
  const child = spawn(process.execPath, args, {
    ...account,
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = once(child, 'close').then(([code]) => (typeof code === 'number' ? code : null));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
    // The watchdog shuts its server down, which writes to the folder until then. The folder is removed next.
    await allGone(dataDir);
  });
  return {
    child,
    pid: child.pid ?? 0,
    exited,
    async next() {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the program ended (${await exited}) without another line`);
      return JSON.parse(value);
    },
    async kill(signal) {
      child.kill(signal);
      await exited;
    },
  };
}

/** Returns whether the other user can run this Node binary, which is false in a checkout below a closed home. */
export async function canRunNode(account: ServiceUser | undefined): Promise<boolean> {
  if (!account) return false;
  return (await runCommand(process.execPath, ['--version'], { account })).code === 0;
}
