import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Binaries } from './binaries.ts';
import { type ServiceUser, runCommand } from './command.ts';
import { type ClusterPaths, readState } from './data-dir.ts';
import { EmbeddedError, unless } from './reports.ts';

/**
 * Makes sure that there is a cluster: runs initdb if the data directory is empty or an initdb was cut off. Returns the
 * password of its user `postgres`.
 *
 * @param home the data directory's real path, owned by `account`; none of its processes run
 * @throws EmbeddedError `init-failed`, `data-dir`, `incompatible-version`, `password-missing`
 */
export async function ensureCluster(input: {
  home: string;
  paths: ClusterPaths;
  binaries: Binaries;
  account: ServiceUser | null;
  sync: boolean;
}): Promise<{ password: string; created: boolean }> {
  const { home, paths } = input;
  if ((await readState(home, paths)) === 'cluster') {
    await checkVersion(home, input.binaries.major);
    return { password: await readPassword(paths), created: false };
  }
  for (const entry of await readdir(home)) await rm(join(home, entry), { recursive: true, force: true });
  return { password: await initialize(input), created: true };
}

async function checkVersion(home: string, major: number): Promise<void> {
  const version = Number.parseInt(await readFile(join(home, 'PG_VERSION'), 'utf8'), 10);
  if (version === major) return;
  throw new EmbeddedError(
    'incompatible-version',
    `The cluster in ${home} was made by Postgres ${version}, this is Postgres ${major}`,
    'move the data with pg_dump, or choose another DATA_DIR (the mirror then loads from scratch)',
  );
}

async function readPassword(paths: ClusterPaths): Promise<string> {
  const text = await unless(['ENOENT'], readFile(paths.passwordFile, 'utf8'));
  if (text?.trim()) return text.trim();
  throw new EmbeddedError(
    'password-missing',
    `${paths.passwordFile} is missing or empty, and the cluster in ${paths.dataDir} needs it`,
    `restore the file, or remove ${paths.dataDir} to start afresh`,
  );
}

/** Writes a file that only its owner can read: this user, or `owner` if given. */
async function writeSecret(path: string, secret: string, owner: ServiceUser | null): Promise<void> {
  // Removed first, because an existing file would keep its mode and owner.
  await rm(path, { force: true });
  const file = await open(path, 'wx', 0o600);
  try {
    if (owner) await file.chown(owner.uid, owner.gid);
    await file.writeFile(`${secret}\n`);
  } finally {
    await file.close();
  }
}

async function initialize(input: Parameters<typeof ensureCluster>[0]): Promise<string> {
  const { home, paths, account } = input;
  const password = randomBytes(24).toString('base64url');
  // Removed first, because the existing file may be a link.
  await rm(paths.initMarker, { force: true });
  await writeFile(paths.initMarker, '', { flag: 'wx' });
  await writeSecret(paths.passwordFile, password, null);
  // The service user may read neither our file nor, if the data directory is a link, the folder that contains it.
  const handedOver = account ? `${home}.pwfile` : paths.passwordFile;
  if (account) await writeSecret(handedOver, password, account);
  const args = [
    `--pgdata=${home}`,
    '--username=postgres',
    `--pwfile=${handedOver}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // Independent of the shell's locale and the system's list of locales; sort orders never change with a libc.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    ...(input.sync ? [] : ['--no-sync']),
  ];
  // The working directory marks initdb as one of this cluster's processes, for the clean-up after a crash.
  const { code, output } = await runCommand(join(input.binaries.folder, 'bin', 'initdb'), args, {
    account,
    cwd: home,
  });
  if (account) await rm(handedOver);
  if (code !== 0) {
    throw new EmbeddedError(
      'init-failed',
      `initdb failed in ${home}: ${output.slice(-2_000)}`,
      remedyFor(output),
    );
  }
  await rm(paths.initMarker);
  return password;
}

/** Returns what to do, from the output of initdb. Pure. */
export function remedyFor(output: string): string {
  const [, uid] = /effective user ID (\d+)/.exec(output) ?? [];
  return uid === undefined
    ? 'read what initdb says, or set DATABASE_URL'
    : `Postgres needs a name for its user: add one with the id ${uid} to /etc/passwd, start as a user that has one, or set DATABASE_URL`;
}
