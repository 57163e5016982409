import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A fault planted on purpose: `from`, which occurs in `file` exactly once, becomes `to`, and one of `tests` must
 * fail.
 */
export interface Mutant {
  readonly breaks: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Paths of test files. */
  readonly tests: readonly string[];
}

/** Returns the text of the mutant's file with the fault. Throws if `from` does not occur exactly once. */
export function planted({ breaks, file, from, to }: Mutant, text: string): string {
  const [before, after, ...others] = text.split(from);
  if (before === undefined || after === undefined || others.length > 0)
    throw new Error(`${breaks}: its place in ${file} must be there once`);
  return before + to + after;
}

const DEFINED = /CREATE OR REPLACE (?:VIEW|FUNCTION|PROCEDURE) ([\w.]+)/gi;

/**
 * Returns the mutant in the file where it has an effect: if later migrations redefine its view or function, the
 * fault belongs in the last of them. `migrations`: the text of each by path, in order; `from` is looked for in the
 * last one that contains it.
 */
export function placed(mutant: Mutant, migrations: ReadonlyMap<string, string>): Mutant {
  if (!migrations.has(mutant.file)) return mutant;
  const [, text = ''] = [...migrations].findLast(([, other]) => other.includes(mutant.from)) ?? [];
  const name = [...text.slice(0, text.indexOf(mutant.from)).matchAll(DEFINED)].at(-1)?.[1];
  const redefining = [...migrations].filter(([, other]) =>
    [...other.matchAll(DEFINED)].some(([, defined]) => defined === name),
  );
  return name === undefined ? mutant : { ...mutant, file: redefining.at(-1)?.[0] ?? mutant.file };
}

/** Reads the migrations below `root`, for `placed`. */
export function readMigrations(root: string): ReadonlyMap<string, string> {
  const files = readdirSync(join(root, 'drizzle')).filter((file) => /^\d{4}_.*\.sql$/.test(file));
  return new Map(
    files.toSorted().map((file) => [`drizzle/${file}`, readFileSync(join(root, 'drizzle', file), 'utf8')]),
  );
}

/** Builds faults in one file that the same tests should notice, from what each breaks, `from` and `to`. */
export function faultsOf(
  file: string,
  tests: readonly string[],
  ...faults: readonly (readonly [breaks: string, from: string, to: string])[]
): Mutant[] {
  return faults.map(([breaks, from, to]) => ({ breaks, file, from, to, tests }));
}
