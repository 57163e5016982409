import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { errorCode } from '../lib/errors.ts';
import { EmbeddedError } from './reports.ts';

/** The user that Postgres runs as if it cannot run as the user of this process. */
export interface ServiceUser {
  uid: number;
  gid: number;
}

const SERVICE_USERS = ['postgres', 'nobody'];

/** Parses the users of an `/etc/passwd`, by name. Skips malformed lines. */
export function parsePasswd(text: string): Map<string, ServiceUser> {
  const users = new Map<string, ServiceUser>();
  for (const line of text.split('\n')) {
    const match = /^([^:#]+):[^:]*:(-?\d+):(-?\d+):/.exec(line);
    if (!match?.[1]) continue;
    // macOS writes nobody's ids as -2; the system calls want them unsigned.
    users.set(match[1], { uid: Number(match[2]) >>> 0, gid: Number(match[3]) >>> 0 });
  }
  return users;
}

/**
 * Decides who runs Postgres; null means this process's own user. Postgres refuses to run as root, so root takes the
 * owner of an existing data directory, else the user `postgres`, else `nobody`.
 *
 * @throws EmbeddedError `no-service-user`
 */
export function chooseAccount(input: {
  euid: number;
  passwd: string;
  clusterOwner: ServiceUser | null;
}): ServiceUser | null {
  if (input.euid !== 0) return null;
  if (input.clusterOwner && input.clusterOwner.uid !== 0) return input.clusterOwner;
  const users = parsePasswd(input.passwd);
  for (const name of SERVICE_USERS) {
    const user = users.get(name);
    if (user && user.uid !== 0) return user;
  }
  throw new EmbeddedError(
    'no-service-user',
    'Postgres does not run as root, and this machine has neither a user postgres nor a user nobody',
    'start as an ordinary user, create a user postgres, or set DATABASE_URL',
  );
}

/**
 * The whole environment of every child. Ours is not passed on: it contains the partner's credential, and PG* variables
 * of the user's shell would change what initdb and the server do.
 */
export const CHILD_ENV = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' };

/** How a command ended: its exit code (128 + n after signal n, 127 if it could not be started), and all its output. */
export interface CommandResult {
  code: number;
  output: string;
}

/** Runs a command to its end, as `account` if given. Never rejects: a failure to start is code 127. */
export async function runCommand(
  file: string,
  args: readonly string[],
  options: { account: ServiceUser | null; cwd?: string },
): Promise<CommandResult> {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(file, args, {
      ...options.account,
      cwd: options.cwd ?? '/',
      env: CHILD_ENV,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const collect = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('error', (error) => resolve({ code: 127, output: errorCode(error) ?? error.message }));
    child.on('close', (code, signal) => {
      resolve({ code: code ?? 128 + (signal ? constants.signals[signal] : 0), output: output.trim() });
    });
  });
}

/** Returns whether `account` can enter `folder`. Asks the system itself, so that access lists and mounts count too. */
export async function canEnter(folder: string, account: ServiceUser | null): Promise<boolean> {
  const { code } = await runCommand('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { account });
  return code === 0;
}
