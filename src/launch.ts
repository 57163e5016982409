/** `await using` and more: older ones cannot even read the program's files. */
export const OLDEST_NODE = 24;

/** As `npm start` and the image have it: without it V8 lets young objects take tens of megabytes, and a manifest fills them. */
export const SEMI_SPACE = '--max-semi-space-size=4';

/**
 * What the package's bin does first, by `process.version`, `process.execArgv` and whether the process can be replaced
 * (`process.execve`): refuse, start again with `SEMI_SPACE` (V8 reads it at its own start only), or go on.
 */
export function launchOf(
  version: string,
  execArgv: readonly string[],
  replaceable: boolean,
): 'too-old' | 'again' | 'go' {
  if (Number.parseInt(version.replace('v', ''), 10) < OLDEST_NODE) return 'too-old';
  const chosen = execArgv.some((flag) => /^--max[-_]semi[-_]space[-_]size\b/.test(flag));
  return chosen || !replaceable ? 'go' : 'again';
}

/** The message for a Node.js that is too old, with line ends. */
export function tooOld(version: string, execPath: string): string {
  return [
    `catalog-mirror needs Node.js ${OLDEST_NODE} or newer; this is ${version} (${execPath})`,
    '  what to do: start it with `npx catalog-mirror` where it is installed; npx finds the Node.js that comes with the package;',
    `  or install Node.js ${OLDEST_NODE}`,
    '',
  ].join('\n');
}
