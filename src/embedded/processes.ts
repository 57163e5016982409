import { readdir, readFile, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { errorCode } from '../lib/errors.ts';
import { runCommand } from './command.ts';
import { isAlive } from './owner.ts';
import { EmbeddedError, type EmbeddedLog, unless } from './reports.ts';

/** The content of `postmaster.pid`: the server's pid, and whether it takes connections. */
export interface PostmasterFile {
  pid: number;
  ready: boolean;
}

const POLL_MS = 20;
const PROGRAMS = new Set(['postgres', 'initdb']);

/** Parses the text of a `postmaster.pid`; null if it has no pid (the server writes it line by line). */
export function parsePostmasterFile(text: string): PostmasterFile | null {
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  // A server started by hand in single-user mode writes its pid negated.
  if (!Number.isInteger(pid) || pid === 0) return null;
  return { pid: Math.abs(pid), ready: lines[7]?.trim() === 'ready' };
}

/** Reads the `postmaster.pid` of a data directory; null if there is none. */
export async function readPostmasterFile(dataDir: string): Promise<PostmasterFile | null> {
  const text = await unless(['ENOENT'], readFile(join(dataDir, 'postmaster.pid'), 'utf8'));
  return text === undefined ? null : parsePostmasterFile(text);
}

async function worksIn(pid: number, dataDir: string): Promise<boolean> {
  // The process is gone, or another user's, which we could not signal either.
  const gone = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'];
  const cwd = await unless(gone, readlink(`/proc/${pid}/cwd`));
  if (cwd !== dataDir) return false;
  const program = await unless(gone, readFile(`/proc/${pid}/comm`, 'utf8'));
  return program !== undefined && PROGRAMS.has(program.trim());
}

/**
 * Returns the pids of all Postgres processes of a data directory (an absolute path free of links). A pid alone proves
 * nothing, because pids are reused. On Linux a process counts if its program is Postgres and the data directory is its
 * working directory; elsewhere only the server itself is found, by its command line.
 */
export async function clusterProcesses(dataDir: string): Promise<number[]> {
  const names = await unless(['ENOENT'], readdir('/proc'));
  if (names === undefined || !names.includes('self')) {
    const pid = (await readPostmasterFile(dataDir))?.pid;
    if (pid === undefined) return [];
    const { output } = await runCommand('ps', ['-ww', '-o', 'command=', '-p', String(pid)], {
      account: null,
    });
    return output.includes(`postgres -D ${dataDir} `) ? [pid] : [];
  }
  const found: number[] = [];
  for (const name of names) {
    if (/^\d+$/.test(name) && (await worksIn(Number(name), dataDir))) found.push(Number(name));
  }
  return found;
}

/** Sends a signal to a process that may be gone by now. */
function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}

/** Waits until `done` returns true, at most `limitMs` milliseconds; returns whether it did. */
export async function waitUntil(
  done: () => boolean | Promise<boolean>,
  limitMs: number,
  clock: Clock,
): Promise<boolean> {
  const start = clock.monotonic();
  for (;;) {
    if (await done()) return true;
    if (clock.monotonic() - start >= limitMs) return false;
    await clock.sleep(POLL_MS);
  }
}

/** One step in ending a server: a signal, and how many milliseconds it gets. */
export interface StopStep {
  signal: NodeJS.Signals;
  waitMs: number;
}

/** SIGINT is Postgres's fast shutdown (with a checkpoint, hence the long wait), SIGQUIT its immediate one. */
export const STOP_STEPS: readonly StopStep[] = [
  { signal: 'SIGINT', waitMs: 60_000 },
  { signal: 'SIGQUIT', waitMs: 10_000 },
  { signal: 'SIGKILL', waitMs: 5_000 },
];

/** Goes through the steps until `gone` returns true; returns whether it did. */
export async function escalate(
  steps: readonly StopStep[],
  send: (signal: NodeJS.Signals) => void | Promise<void>,
  gone: () => boolean | Promise<boolean>,
  clock: Clock,
): Promise<boolean> {
  for (const step of steps) {
    if (await gone()) return true;
    await send(step.signal);
    if (await waitUntil(gone, step.waitMs, clock)) return true;
  }
  return false;
}

/**
 * Frees a data directory of all processes of an earlier owner. Stops and awaits a server that outlived it (or is just
 * being shut down by its watchdog), as well as backends or an initdb without their parent. Removes a `postmaster.pid`
 * whose pid now belongs to an unrelated process, which Postgres would take for a running server. One whose process is
 * dead stays, because Postgres checks the shared memory that it names before it goes on.
 *
 * @param dataDir absolute path free of links; the caller holds its owner lock
 * @throws EmbeddedError `not-stopped`
 */
export async function clearOrphans(dataDir: string, clock: Clock, log: EmbeddedLog): Promise<void> {
  const orphans = await clusterProcesses(dataDir);
  const file = await readPostmasterFile(dataDir);
  if (orphans.length === 0) {
    if (file && isAlive(file.pid)) {
      log('embedded.stale-pid-file-removed', { pid: file.pid });
      await rm(join(dataDir, 'postmaster.pid'), { force: true });
    }
    return;
  }
  const server = file && orphans.includes(file.pid) ? file.pid : null;
  log('embedded.orphan-found', { server, processes: orphans.length });
  const stopped = await escalate(
    server === null ? STOP_STEPS.slice(1) : STOP_STEPS,
    async (signal) => {
      const left = await clusterProcesses(dataDir);
      const polite = server !== null && signal !== 'SIGKILL' && left.includes(server);
      for (const pid of polite ? [server] : left) signalProcess(pid, signal);
    },
    async () => (await clusterProcesses(dataDir)).length === 0,
    clock,
  );
  if (!stopped) {
    throw new EmbeddedError(
      'not-stopped',
      `An earlier Postgres still runs in ${dataDir} (process ${server ?? orphans.join(', ')})`,
      'stop it by hand, or choose another DATA_DIR',
    );
  }
}
