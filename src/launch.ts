/** Older versions cannot even parse the program's files, because of `await using` and other syntax. */
export const OLDEST_NODE = 24;

/**
 * Same as in `npm start` and the image. Without it V8 lets young objects take tens of megabytes, which a manifest
 * fills.
 */
export const SEMI_SPACE = '--max-semi-space-size=4';

/** The flags of the program. The second keeps SIGUSR1 from opening a debugger, which reads every secret in memory. */
export const NODE_FLAGS: readonly string[] = [SEMI_SPACE, '--disable-sigusr1'];

/**
 * Decides what the package's bin does first, by `process.version`, `process.execArgv` and whether the process can be
 * replaced (`process.execve`): refuse, start again with `NODE_FLAGS` (read by Node.js only at its own start), or go on.
 */
export function launchOf(
  version: string,
  execArgv: readonly string[],
  replaceable: boolean,
): 'too-old' | 'again' | 'go' {
  if (Number.parseInt(version.replace('v', ''), 10) < OLDEST_NODE) return 'too-old';
  return replaceable && missingFlags(execArgv).length > 0 ? 'again' : 'go';
}

/** Returns the `NODE_FLAGS` that are not among these flags, whatever value the user has given them. */
export function missingFlags(execArgv: readonly string[]): string[] {
  const nameOf = (flag: string) => flag.replaceAll('_', '-').replace(/=.*$/, '');
  const given = new Set(execArgv.map(nameOf));
  return NODE_FLAGS.filter((flag) => !given.has(nameOf(flag)));
}

/**
 * Finds the Node.js executable that npm installed with the package for this platform. Returns null if there is none.
 *
 * @param resolve finds a package's file, as `require.resolve` does
 */
export function broughtNode(
  platform: string,
  arch: string,
  resolve: (specifier: string) => string,
): string | null {
  try {
    return resolve(`node-${platform}-${arch}/bin/node`);
  } catch {
    // No executable exists for this platform, or optional packages were omitted.
    return null;
  }
}

/** Returns the message for a Node.js that is too old, with line ends. `brought`: the one that came with the package. */
export function tooOld(version: string, execPath: string, brought: string | null, program: string): string {
  const other =
    brought === null
      ? 'start it with `npx catalog-mirror` where it is installed; npx finds the Node.js that comes with the package;'
      : `start it with the Node.js that came with it: ${brought} ${program}`;
  return [
    `catalog-mirror needs Node.js ${OLDEST_NODE} or newer; this is ${version} (${execPath})`,
    `  what to do: ${other}`,
    `  or install Node.js ${OLDEST_NODE}`,
    '',
  ].join('\n');
}

/** Returns the variables that a process was started with, from the text of Linux's `/proc/<pid>/environ`. */
export function environmentIn(text: string): Record<string, string> {
  const pairs = text.split('\0').filter((pair) => pair.indexOf('=') > 0);
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  );
}
