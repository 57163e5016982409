import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { errorCode } from '../lib/errors.ts';
import type { Binaries } from './binaries.ts';
import { type ServiceUser, CHILD_ENV } from './command.ts';
import type { Watchdog } from './owner.ts';
import { escalate, readPostmasterFile, STOP_STEPS, waitUntil } from './processes.ts';
import { EmbeddedError, type EmbeddedLog, unless } from './reports.ts';

export interface ServerSpec {
  /** The data directory's real path. */
  home: string;
  startupLog: string;
  binaries: Binaries;
  account: ServiceUser | null;
  /** Server settings that override the defaults. */
  settings: Record<string, string>;
  startTimeoutMs: number;
  /** The preferred port; any free one if it is taken or not given. */
  port?: number | undefined;
}

export interface Server {
  pid: number;
  port: number;
  /** Shuts down fast, then harder; resolves when the process is gone, at once if it already was. */
  stop(): Promise<void>;
}

const PORT_ATTEMPTS = 5;

/**
 * Suits a mirror beside other programs on one machine: little memory, bounded logs, and no WAL for replicas, which do
 * not exist.
 */
const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  max_connections: '100',
  shared_buffers: '128MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '512MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // One file per weekday, overwritten a week later.
  logging_collector: 'on',
  log_directory: 'log',
  log_filename: 'postgres-%a.log',
  log_rotation_age: '1d',
  log_truncate_on_rotation: 'on',
};

/** Returns the server's command line: the caller's settings override the defaults, except for where it listens. */
export function serverArguments(home: string, port: number, settings: Record<string, string>): string[] {
  const all = {
    ...DEFAULT_SETTINGS,
    ...settings,
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
  };
  return ['-D', home, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** Binds 127.0.0.1:`port` (0: any free one) for a moment. Resolves to the port, or null if it is taken. */
async function tryPort(port: number): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => {
      if (errorCode(error) === 'EADDRINUSE') resolve(null);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : null));
    });
  });
}

/** Returns `wished` if it is free, else any free port. */
async function freePort(wished: number): Promise<number> {
  return (await tryPort(wished)) ?? freePort(0);
}

/**
 * Starts the server and waits until it takes connections, at the wished port if that is free. If another process takes
 * the port between the check and the bind, another free port is tried.
 *
 * @param pickPort proposes a port; for tests
 * @throws EmbeddedError `start-failed`, with the end of what the server wrote
 */
export async function startServer(
  spec: ServerSpec,
  deps: {
    watchdog: Watchdog;
    clock: Clock;
    log: EmbeddedLog;
    pickPort?: () => Promise<number>;
  },
): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    const port = await (deps.pickPort?.() ?? freePort(attempt === 1 ? (spec.port ?? 0) : 0));
    // Removed so that one found after a failure is from this attempt.
    await rm(join(spec.home, 'current_logfiles'), { force: true });
    const run = launch(spec, port);
    const { pid } = run;
    if (pid !== undefined) deps.watchdog.guard(pid);
    const readyOrGone = async () => run.ended() || (pid !== undefined && (await isReady(spec.home, pid)));
    const inTime = await waitUntil(readyOrGone, spec.startTimeoutMs, deps.clock);
    if (inTime && pid !== undefined && !run.ended()) {
      let stopping = false;
      run.child.once('exit', (code, signal) => {
        if (!stopping) deps.log('embedded.server-died', { pid, status: describeExit(code, signal) });
      });
      const stop = async () => {
        stopping = true;
        await stopProcess(run, deps.clock);
      };
      return { pid, port, stop };
    }
    await stopProcess(run, deps.clock);
    if (inTime && attempt < PORT_ATTEMPTS && (await tryPort(port)) === null) {
      deps.log('embedded.port-lost', { port, attempt });
      continue;
    }
    throw new EmbeddedError(
      'start-failed',
      `Postgres ${inTime ? 'gave up' : 'was not ready in time'} (${await run.exit}): ${await lastWords(spec)}`,
      `read the log in ${join(spec.home, 'log')}, or set DATABASE_URL`,
    );
  }
}

interface Run {
  child: ChildProcess;
  pid: number | undefined;
  ended(): boolean;
  /** Resolves with how the process ended, in words. */
  exit: Promise<string>;
}

/** Truncates the file, and never follows a link of that name. */
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

function launch(spec: ServerSpec, port: number): Run {
  const output = openSync(spec.startupLog, NEW_FILE, 0o600);
  try {
    const args = serverArguments(spec.home, port, spec.settings);
    const child = spawn(join(spec.binaries.folder, 'bin', 'postgres'), args, {
      ...spec.account,
      // A session of its own: a Ctrl-C in the terminal is for the owner, which drains first and stops the server last.
      detached: true,
      cwd: spec.home,
      env: CHILD_ENV,
      stdio: ['ignore', output, output],
    });
    let ended = false;
    const exit = new Promise<string>((resolve) => {
      child.once('exit', (code, signal) => resolve(describeExit(code, signal)));
      child.once('error', (error) => resolve(errorCode(error) ?? error.message));
    }).then((status) => {
      ended = true;
      return status;
    });
    child.unref();
    return { child, pid: child.pid, ended: () => ended, exit };
  } finally {
    closeSync(output);
  }
}

function describeExit(code: number | null, signal: NodeJS.Signals | null): string {
  return signal ?? `exit code ${code}`;
}

async function isReady(home: string, pid: number): Promise<boolean> {
  const file = await readPostmasterFile(home);
  return file !== null && file.pid === pid && file.ready;
}

async function stopProcess(run: Run, clock: Clock): Promise<void> {
  const stopped = await escalate(
    STOP_STEPS,
    (signal) => void run.child.kill(signal),
    () => run.ended(),
    clock,
  );
  if (stopped) return;
  throw new EmbeddedError('not-stopped', `Postgres (process ${run.pid}) survives SIGKILL`, 'check the disk');
}

/** Returns the end of what the server wrote to stderr and, once it had opened it, to its log. */
async function lastWords(spec: ServerSpec): Promise<string> {
  const said = await readFile(spec.startupLog, 'utf8');
  const current = await unless(['ENOENT'], readFile(join(spec.home, 'current_logfiles'), 'utf8'));
  const name = current?.trim().split(' ').at(-1);
  // The server's user writes that file, so only the name is taken from it, not the folder.
  const logged = name ? await tail(join(spec.home, 'log', basename(name)), 2_000) : '';
  return `${said.slice(-2_000)}\n${logged}`.trim();
}

async function tail(path: string, bytes: number): Promise<string> {
  const file = await unless(['ENOENT'], open(path));
  if (!file) return '';
  try {
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(bytes),
      position: Math.max(0, size - bytes),
    });
    return buffer.subarray(0, bytesRead).toString();
  } finally {
    await file.close();
  }
}
