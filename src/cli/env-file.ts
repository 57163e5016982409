import { useEnvFiles } from '../config/config.ts';
import { UsageError } from './command.ts';

const OPTION = '--env-file';

/**
 * Removes `--env-file FILE`, which every command has, from the arguments; it may be given more than once. Pure.
 *
 * @throws UsageError if it has no value
 */
export function takeEnvFiles(argv: readonly string[]): { readonly rest: string[]; readonly paths: string[] } {
  const [rest, paths]: [string[], string[]] = [[], []];
  const end = argv.indexOf('--');
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? '';
    const isOurs = end < 0 || at < end;
    if (isOurs && word.startsWith(`${OPTION}=`)) paths.push(word.slice(OPTION.length + 1));
    else if (isOurs && word === OPTION) {
      const path = argv[(at += 1)];
      paths.push(path === undefined || path.startsWith('--') ? '' : path);
    } else rest.push(word);
  }
  if (paths.includes('')) throw new UsageError([`${OPTION}: expects a file`]);
  return { rest, paths };
}

/**
 * Puts the files of `--env-file` into force, and returns the other arguments. Options without a command belong to
 * `run`, and this is one.
 *
 * @throws UsageError that names each file that cannot be read, and each line that is broken
 */
export function withEnvFiles(argv: readonly string[]): readonly string[] {
  const { rest, paths } = takeEnvFiles(argv);
  if (paths.length === 0) return argv;
  const problems = useEnvFiles(paths);
  if (problems.length > 0) throw new UsageError(problems.map((problem) => `${OPTION} ${problem}`));
  return rest.length === 0 ? ['run'] : rest;
}
