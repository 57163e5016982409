import { validateHeaderName, validateHeaderValue } from 'node:http';
import { errorCode } from '../lib/errors.ts';
import { nearest } from '../lib/nearest.ts';

export type Environment = Readonly<Record<string, string | undefined>>;
export type ReadFile = (path: string) => string;

export interface ConfigProblem {
  readonly variable: string;
  readonly expected: string;
  /** The variable is missing or empty. */
  readonly unset?: boolean;
  /** The invalid value; absent if it is, or could be, a secret. */
  readonly got?: string;
  /** What is wrong with a value that is not shown. */
  readonly but?: string;
}

/** Variables that many programs share and usually spell in lower case. */
const SHARED: ReadonlyMap<string, string> = new Map(
  ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'].map((name) => [name, name.toLowerCase()]),
);
/** Variables of other programs that look like misspelt ones of ours. */
const NOT_OURS = /^(?:ftp|all)_proxy$/i;

/** Returns the value of a variable. An empty one counts as unset, and a proxy's lower-case spelling goes first. */
export const given = (env: Environment, name: string): string | undefined =>
  env[SHARED.get(name) ?? name] || env[name] || undefined;

/** Returns the spelling of a variable whose value counts. */
export function spelling(env: Environment, name: string): string {
  const lower = SHARED.get(name) ?? name;
  return env[lower] ? lower : name;
}

/** Returns whether a variable is present in either spelling, even if empty. */
const isThere = (env: Environment, name: string): boolean =>
  env[name] !== undefined || env[SHARED.get(name) ?? name] !== undefined;

/** Puts each variable under one name, with the value that counts of its two spellings. */
function inOneSpelling(values: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const all = new Map(values);
  for (const [name, lower] of SHARED) {
    const value = values.get(lower) || values.get(name) || values.get(lower);
    all.delete(lower);
    if (value !== undefined) all.set(name, value);
  }
  return all;
}

const OUR_PREFIX = /^(?:PARTNER|BULK|SWEEP|DEFERRED|MANIFEST)_/;

/** Warns of names in the environment that are not ours but were probably meant to be. Never shows their values. */
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

/** The content of an environment file: its variables, and what is wrong with its lines. */
interface EnvFile {
  readonly values: ReadonlyMap<string, string>;
  /** Each names its line and at most the variable: the rest may be a secret. */
  readonly problems: readonly string[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const QUOTES = ['"', "'"];

/**
 * Parses an environment file as both Docker and systemd do, except for backslashes (`backslashWarnings`): `NAME=value`,
 * blank lines, and comments at the beginning of a line. A value is everything after the `=`, without surrounding
 * blanks; quotes around the whole of it are dropped. Nothing else has a meaning: no escapes, no `$`, and a `#` inside a
 * value is part of it.
 */
export function parseEnvFile(text: string): EnvFile {
  const values = new Map<string, string>();
  const problems: string[] = [];
  for (const [at, raw] of text.split(/\r?\n/).entries()) {
    // This also removes a byte order mark.
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const sign = line.indexOf('=');
    const name = line
      .slice(0, Math.max(0, sign))
      .replace(/^export\s+/, '')
      .trim();
    const value = unquoted(line.slice(sign + 1).trim());
    if (sign < 0 || !NAME.test(name)) problems.push(`line ${at + 1}: expected NAME=value`);
    else if (value === null)
      problems.push(`line ${at + 1}: the quote around the value of ${name} has no end in the line`);
    else if (value.includes('\0')) problems.push(`line ${at + 1}: the value of ${name} has a NUL character`);
    else values.set(name, value);
  }
  return { values, problems };
}

/** Removes the quotes around a value. Returns null if the opening quote is not closed at the end. */
function unquoted(value: string): string | null {
  const quote = QUOTES.find((each) => value.startsWith(each));
  if (quote === undefined) return value;
  return value.length > 1 && value.endsWith(quote) ? value.slice(1, -1) : null;
}

/**
 * Finds variables from files (`fileOf`) that systemd's EnvironmentFile= reads differently from Docker and this program:
 * it drops a backslash, and joins a line that ends in one with the next. The value is not shown: it may be a secret.
 */
export function backslashWarnings(
  env: Environment,
  fileOf: (variable: string) => string | null,
): { readonly variable: string; readonly text: string }[] {
  return Object.entries(env).flatMap(([variable, value]) => {
    const file = value?.includes('\\') === true ? fileOf(variable) : null;
    if (file === null) return [];
    const text = `${variable} of ${file} has a backslash, which EnvironmentFile= of systemd takes for an escape`;
    return [{ variable, text }];
  });
}

/** Variables that Node.js and its OpenSSL read before any program starts, so that no program can apply them later. */
const READ_BEFORE = ['NODE_OPTIONS', 'OPENSSL_CONF'];

/** Finds variables from files (`fileOf`) that come too late, and says how to set them in time. */
export function lateWarnings(
  env: Environment,
  fileOf: (variable: string) => string | null,
): { readonly text: string; readonly remedy: string }[] {
  const late = READ_BEFORE.map((variable) => ({ variable, file: given(env, variable) && fileOf(variable) }));
  return late
    .filter(({ file }) => typeof file === 'string')
    .map(({ variable, file }) => ({
      text: `${variable} of ${file} is ignored: Node.js reads it before it starts the program`,
      remedy: 'set it in the shell, by `docker run --env-file` or by EnvironmentFile= of systemd',
    }));
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'it may not be read by this user',
  EISDIR: 'it is a folder',
};

/** Reads environment files, and reports those that cannot be read or have a broken line. */
export function readEnvFiles(
  paths: readonly string[],
  readFile: ReadFile,
): { readonly files: (Pick<EnvFile, 'values'> & { readonly path: string })[]; readonly problems: string[] } {
  const problems: string[] = [];
  const files = paths.flatMap((path) => {
    try {
      const { values, problems: broken } = parseEnvFile(readFile(path));
      problems.push(...broken.map((problem) => `${path}: ${problem}`));
      return [{ path, values }];
    } catch (error) {
      const code = errorCode(error) ?? 'it cannot be read';
      problems.push(`${path}: ${UNREADABLE[code] ?? code}`);
      return [];
    }
  });
  return { files, problems };
}

/** A variable from a file, and which file. */
interface FromFile {
  readonly value: string;
  readonly path: string;
}

/**
 * Returns what the files add to the environment, which takes precedence: a variable that is set there, even to nothing,
 * is not taken from a file. The last of several files counts. For each of the `secrets`, which can be given as files,
 * either of its two names stands for both.
 */
export function addedByFiles(
  env: Environment,
  files: readonly { readonly path: string; readonly values: EnvFile['values'] }[],
  secrets: readonly string[],
): ReadonlyMap<string, FromFile> {
  const others = new Map(
    secrets.flatMap((name) => [[name, `${name}_FILE`] as const, [`${name}_FILE`, name] as const]),
  );
  const added = new Map<string, FromFile>();
  for (const { path, values: spelt } of files) {
    const values = inOneSpelling(spelt);
    // A later file may use the other of the two names.
    for (const [name, value] of values) {
      const other = others.get(name);
      if (value !== '' && other !== undefined && !values.has(other)) added.delete(other);
    }
    for (const [name, value] of values) {
      const other = others.get(name);
      // Whoever sets a secret to nothing wants none. An empty `_FILE=` is what a template leaves if there is no file.
      const isElsewhere =
        other !== undefined &&
        (name === `${other}_FILE` ? isThere(env, other) : given(env, other) !== undefined);
      if (isThere(env, name) || isElsewhere) continue;
      added.set(name, { value, path });
    }
  }
  return added;
}

/**
 * Parses headers as OpenTelemetry writes them in one variable: `name=value` separated by commas, values percent-encoded
 * (W3C Baggage). Names become lower case. Returns null if a part is invalid or cannot be sent.
 */
export function parseHeaderPairs(text: string): Readonly<Record<string, string>> | null {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '');
  const headers = new Map<string, string>();
  for (const pair of pairs) {
    const sign = pair.indexOf('=');
    const name = pair.slice(0, Math.max(0, sign)).trim().toLowerCase();
    try {
      const value = decodeURIComponent(pair.slice(sign + 1).trim());
      validateHeaderName(name);
      validateHeaderValue(name, value);
      headers.set(name, value);
    } catch {
      return null;
    }
  }
  return headers.size === 0 ? null : Object.fromEntries(headers);
}
