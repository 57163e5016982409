import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Account } from './account.ts';
import { errnoOf } from './errors.ts';

/**
 * The whole environment of every child. Ours stays with us: it holds the partner's credential, and PG* variables of the
 * user's shell would change what initdb and the server do.
 */
export const CHILD_ENV = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' };

/** How a command ended: its exit code (128 + n after signal n, 127 where it could not be started), and all it wrote. */
export interface CommandResult {
  code: number;
  output: string;
}

/** Runs a command to its end, as `account` where one is given. Never rejects: a failure to start is code 127. */
export async function runCommand(
  file: string,
  args: readonly string[],
  options: { account: Account | null; cwd?: string },
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
    child.on('error', (error) => resolve({ code: 127, output: errnoOf(error) ?? error.message }));
    child.on('close', (code, signal) => {
      resolve({ code: code ?? 128 + (signal ? constants.signals[signal] : 0), output: output.trim() });
    });
  });
}

/** True where `account` can enter `folder`: asked of the system itself, so that access lists and mounts count too. */
export async function canEnter(folder: string, account: Account | null): Promise<boolean> {
  const { code } = await runCommand('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { account });
  return code === 0;
}
