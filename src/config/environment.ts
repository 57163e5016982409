import { nearest } from '../lib/nearest.ts';

export type Environment = Readonly<Record<string, string | undefined>>;
export type ReadFile = (path: string) => string;

export interface ConfigProblem {
  readonly variable: string;
  readonly expected: string;
  /** The variable is not there, or empty. */
  readonly unset?: boolean;
  /** The offending value; absent where it is, or could be, a secret. */
  readonly got?: string;
  /** What is wrong with a value that is not shown. */
  readonly but?: string;
}

/** Variables that many programs share, and that are spelt in lower case more often than not. */
const SHARED: ReadonlyMap<string, string> = new Map(
  ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'].map((name) => [name, name.toLowerCase()]),
);
/** Variables of other programs that look like misspelt ones of ours. */
const NOT_OURS = /^(?:ftp|all)_proxy$/i;

/** The value of a variable; an empty one is an unset one, and of a proxy's two spellings the lower case goes first. */
export const given = (env: Environment, name: string): string | undefined =>
  env[SHARED.get(name) ?? name] || env[name] || undefined;

/** Whether a variable is there in either spelling, be it empty. */
export const isThere = (env: Environment, name: string): boolean =>
  env[name] !== undefined || env[SHARED.get(name) ?? name] !== undefined;

/** Variables with each under one name, whichever of its two spellings has the value that counts. */
export function inOneSpelling(values: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const all = new Map(values);
  for (const [name, lower] of SHARED) {
    const value = values.get(lower) || values.get(name) || values.get(lower);
    all.delete(lower);
    if (value !== undefined) all.set(name, value);
  }
  return all;
}

const OUR_PREFIX = /^(?:PARTNER|BULK|SWEEP|DEFERRED|MANIFEST)_/;

/** Names in the environment that are none of ours but were probably meant to be. Values are not read. */
export function unknownNames(
  env: Environment,
  variables: readonly { readonly name: string; readonly secret: boolean }[],
): string[] {
  const known = variables.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]));
  const others = [...SHARED.values()];
  return Object.keys(env)
    .filter((name) => given(env, name) !== undefined && !known.includes(name))
    .filter((name) => !others.includes(name) && !NOT_OURS.test(name))
    .flatMap((name) => {
      if (known.includes(name.replace(/_FILE$/, '')))
        return [`${name} is ignored: this variable cannot be given as a file`];
      const meant = nearest(name.toUpperCase(), known, ({ length }) => (length > 9 ? 2 : 1));
      if (meant !== undefined)
        return [`${name} is not a variable of catalog-mirror and is ignored; did you mean ${meant}?`];
      return OUR_PREFIX.test(name) ? [`${name} is not a variable of catalog-mirror and is ignored`] : [];
    });
}
