/** A fault planted on purpose: `from`, which stands in `file` exactly once, becomes `to`, and one of `tests` must fail. */
export interface Mutant {
  readonly breaks: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Paths of test files. */
  readonly tests: readonly string[];
}

/** The text of the mutant's file with the fault in it. Throws where the place is not there, or there twice. */
export function planted({ breaks, file, from, to }: Mutant, text: string): string {
  const [before, after, ...others] = text.split(from);
  if (before === undefined || after === undefined || others.length > 0)
    throw new Error(`${breaks}: its place in ${file} must be there once`);
  return before + to + after;
}

/** Faults of one file that the same tests are to notice, each as what it breaks, `from` and `to`. */
export function faultsOf(
  file: string,
  tests: readonly string[],
  ...faults: readonly (readonly [breaks: string, from: string, to: string])[]
): Mutant[] {
  return faults.map(([breaks, from, to]) => ({ breaks, file, from, to, tests }));
}
