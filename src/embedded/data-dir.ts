import {
  chmod,
  chown,
  lchown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  realpath,
  rmdir,
  stat,
  symlink,
} from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { errorCode } from '../lib/errors.ts';
import { type ServiceUser, canEnter } from './command.ts';
import { EmbeddedError, type EmbeddedLog, unless } from './reports.ts';

/** The data directory and the files that belong to it but must not be inside it: they stay with the owner's user. */
export interface ClusterPaths {
  dataDir: string;
  passwordFile: string;
  lockFile: string;
  /** The owner's pid, for messages. */
  ownerFile: string;
  /** Exists while initdb is at work: until then its files are not a cluster. */
  initMarker: string;
  /** The server's output before its own log takes over. */
  startupLog: string;
}

const FS_REFUSALS = new Set([
  'EACCES',
  'EPERM',
  'EROFS',
  // The path, or one of its parents, is a file.
  'EEXIST',
  'ENOTDIR',
  'ENOSPC',
  'EDQUOT',
  'ELOOP',
  'ENAMETOOLONG',
]);

/** What a data directory contains, which decides how it is treated. */
export type ClusterState = 'empty' | 'half-made' | 'cluster' | 'unrelated';

/** Names that initdb creates, some of them before PG_VERSION. */
const OF_INITDB =
  /^(?:PG_VERSION|base|global|pg_[a-z_]+|pg_(?:hba|ident)\.conf|postgresql(?:\.auto)?\.conf|postmaster\.(?:pid|opts))$/;
const OF_A_CLUSTER = ['PG_VERSION', 'base', 'global'];

/**
 * Decides what a data directory contains, from its names and whether initdb's marker exists beside it. The marker alone
 * does not make files initdb's, because a half-made directory is emptied.
 */
export function clusterState(entries: readonly string[], marked: boolean): ClusterState {
  if (entries.length === 0) return 'empty';
  if (marked) return entries.every((name) => OF_INITDB.test(name)) ? 'half-made' : 'unrelated';
  return OF_A_CLUSTER.every((name) => entries.includes(name)) ? 'cluster' : 'unrelated';
}

/**
 * Returns the state of `home`; only reads.
 *
 * @throws EmbeddedError `data-dir` if its content is not ours
 */
export async function readState(
  home: string,
  paths: ClusterPaths,
): Promise<Exclude<ClusterState, 'unrelated'>> {
  const marked = (await unless(['ENOENT'], lstat(paths.initMarker))) !== undefined;
  const state = clusterState(await readdir(home), marked);
  if (state !== 'unrelated') return state;
  throw new EmbeddedError(
    'data-dir',
    `${paths.dataDir} holds files that are no Postgres cluster`,
    'empty it, or choose another DATA_DIR',
  );
}

/** Returns the paths that belong to a data directory (an absolute path). */
export function clusterPaths(dataDir: string): ClusterPaths {
  return {
    dataDir,
    passwordFile: `${dataDir}.password`,
    lockFile: `${dataDir}.lock`,
    ownerFile: `${dataDir}.owner`,
    initMarker: `${dataDir}.initializing`,
    startupLog: `${dataDir}.startup.log`,
  };
}

/**
 * Returns the absolute path of a data directory.
 *
 * @throws EmbeddedError `data-dir` if the path is relative to a folder that somebody has removed
 */
export function absolute(dataDir: string): string {
  try {
    return resolve(dataDir);
  } catch (error) {
    throw new EmbeddedError(
      'data-dir',
      `the data directory ${dataDir} is in the folder that this was started in, which is gone`,
      'start it in a folder that is there, or set DATA_DIR to a path that begins with /',
      error,
    );
  }
}

/** Runs a step on the data directory; refusals of the file system become EmbeddedError `data-dir`. */
export async function onDisk<T>(
  dataDir: string,
  step: () => Promise<T>,
  alsoRefused: readonly string[] = [],
): Promise<T> {
  try {
    return await step();
  } catch (error) {
    const code = errorCode(error);
    if (code === null || !(FS_REFUSALS.has(code) || alsoRefused.includes(code))) throw error;
    throw new EmbeddedError(
      'data-dir',
      `The data directory ${dataDir} cannot be used (${code})`,
      'start as the user who owns it, free some space, or choose another DATA_DIR',
      error,
    );
  }
}

/**
 * Creates a folder and its missing parents, open for every user to pass through, whatever the umask. One by one,
 * because Node.js retries forever if a folder can neither be created nor exists, as in /proc and below an automounter.
 */
export async function makeFolders(folder: string): Promise<void> {
  const found = await unless(['ENOENT'], stat(folder));
  if (found?.isDirectory() === true) return;
  if (found === undefined) await makeFolders(dirname(folder));
  try {
    await mkdir(folder);
  } catch (error) {
    // Somebody else has created it meanwhile; or the path is a file, or a link to nowhere.
    if (errorCode(error) !== 'EEXIST' || !(await stat(folder)).isDirectory()) throw error;
    return;
  }
  await chmod(folder, 0o755);
}

/** Returns the user who owns the data directory, or null if it does not exist yet. */
export async function ownerOf(dataDir: string): Promise<ServiceUser | null> {
  const found = await unless(['ENOENT'], stat(dataDir));
  return found ? { uid: found.uid, gid: found.gid } : null;
}

async function giveTo(folder: string, account: ServiceUser): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    await lchown(join(entry.parentPath, entry.name), account.uid, account.gid);
  }
  await chown(folder, account.uid, account.gid);
}

/**
 * Creates the folder of a new cluster, or finds the existing one, and makes sure that `account` owns it and can reach
 * it. Returns its real path. If root asks for a folder that the service user cannot reach (a checkout below root's
 * closed home), a new cluster is placed below `systemFolder`, and the requested path becomes a link to it.
 *
 * @throws EmbeddedError `data-dir`
 */
export async function placeDataDir(
  paths: ClusterPaths,
  account: ServiceUser | null,
  systemFolder: string,
  log: EmbeddedLog,
): Promise<string> {
  const { dataDir } = paths;
  const found = await unless(['ENOENT'], lstat(dataDir));
  const exists = found !== undefined;
  if (account && found?.isSymbolicLink() && found.uid !== process.geteuid?.())
    throw linkOfAnother(dataDir, found.uid);
  const place = exists ? await unless(['ENOENT'], realpath(dataDir)) : dataDir;
  if (place === undefined) throw danglingLink(dataDir);
  // Before anything changes owner or mode, or is emptied.
  const empty = !exists || (await readState(place, paths)) === 'empty';
  if (account && empty && !(await canEnter(dirname(place), account))) {
    return relocate(dataDir, systemFolder, account, log);
  }
  if (!exists) await mkdir(dataDir, { mode: 0o700 });
  const home = await realpath(dataDir);
  await takeOver(home, account);
  if (account && !(await canEnter(home, account))) {
    throw new EmbeddedError(
      'data-dir',
      `User ${account.uid}, who runs Postgres, cannot reach ${home}`,
      'move it to a folder that every user may pass through, or choose another DATA_DIR',
    );
  }
  return home;
}

/** Gives the data directory the owner and the mode that Postgres insists on. */
async function takeOver(home: string, account: ServiceUser | null): Promise<void> {
  const { uid, mode } = await stat(home);
  const euid = process.geteuid?.();
  if (account && uid !== account.uid) await giveTo(home, account);
  if (!account && uid !== euid) {
    throw new EmbeddedError(
      'data-dir',
      `${home} belongs to user ${uid}, and this process runs as user ${euid}`,
      'start as that user, or choose another DATA_DIR',
    );
  }
  if (mode & 0o027) await chmod(home, 0o700);
}

/** Root only: creates the new cluster's folder where the service user can reach it, and links to it from `dataDir`. */
async function relocate(
  dataDir: string,
  systemFolder: string,
  account: ServiceUser,
  log: EmbeddedLog,
): Promise<string> {
  await makeFolders(systemFolder);
  // A name never used before: another checkout that once had this path may still link to its own cluster.
  const home = await mkdtemp(join(systemFolder, `${basename(dataDir)}-`));
  await chown(home, account.uid, account.gid);
  await unless(['ENOENT'], rmdir(dataDir));
  await symlink(home, dataDir);
  log('embedded.data-dir-relocated', { dataDir, to: home, uid: account.uid });
  return realpath(home);
}

/**
 * Root takes over and empties what a link leads to, so it follows only root's own links: those of `relocate`, and those
 * that a person made as root.
 */
function linkOfAnother(dataDir: string, uid: number): EmbeddedError {
  return new EmbeddedError(
    'data-dir',
    `${dataDir} is a link that user ${uid} has made`,
    'start as that user, replace the link by one of your own, or choose another DATA_DIR',
  );
}

function danglingLink(dataDir: string): EmbeddedError {
  return new EmbeddedError(
    'data-dir',
    `${dataDir} is a link to a folder that does not exist`,
    'remove the link to start afresh, or bring the folder back',
  );
}
