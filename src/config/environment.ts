import { validateHeaderName, validateHeaderValue } from 'node:http';
import { errorCode } from '../lib/errors.ts';
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

/** The spelling of a variable that has the value which counts. */
export function spelling(env: Environment, name: string): string {
  const lower = SHARED.get(name) ?? name;
  return env[lower] ? lower : name;
}

/** Whether a variable is there in either spelling, be it empty. */
const isThere = (env: Environment, name: string): boolean =>
  env[name] !== undefined || env[SHARED.get(name) ?? name] !== undefined;

/** Variables with each under one name, whichever of its two spellings has the value that counts. */
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

/** An environment file that was read: its variables, and what is wrong with its lines. */
interface EnvFile {
  readonly values: ReadonlyMap<string, string>;
  /** Each names its line, and holds nothing of what stands there: it may be a secret. */
  readonly problems: readonly string[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const QUOTES = ['"', "'"];

/**
 * Reads the lines of an environment file, as Docker and systemd both read them but for a backslash
 * (`backslashWarnings`): `NAME=value`, blank lines, and comments that begin a line. A value is what stands behind the
 * sign, without blanks around it; quotes around the whole of it are dropped. Nothing else has a meaning: no escapes, no
 * `$`, and a `#` inside a value is part of it.
 */
export function parseEnvFile(text: string): EnvFile {
  const values = new Map<string, string>();
  const problems: string[] = [];
  for (const [at, raw] of text.split(/\r?\n/).entries()) {
    // A byte order mark counts as a blank.
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

/** The value without the quotes around it; null where one begins it and none ends it. */
function unquoted(value: string): string | null {
  const quote = QUOTES.find((each) => value.startsWith(each));
  if (quote === undefined) return value;
  return value.length > 1 && value.endsWith(quote) ? value.slice(1, -1) : null;
}

/**
 * Variables from files (`fileOf`) that systemd's EnvironmentFile= reads otherwise than Docker and this program: it
 * drops a backslash, and joins a line that ends in one with the next. The value is not named: it may be a secret.
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

/** What Node.js and its OpenSSL read before any program does, and no program can make up for. */
const READ_BEFORE = ['NODE_OPTIONS', 'OPENSSL_CONF'];

/** Variables from files (`fileOf`) that come too late, and how they come in time. */
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

/** Reads environment files; of each that cannot be read, or has a broken line, says so. */
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

/** A variable that a file gives, and which file. */
interface FromFile {
  readonly value: string;
  readonly path: string;
}

/**
 * What the files add to the environment, which takes precedence: a variable that is set there, even to nothing, is not
 * taken from a file. Of several files the last one counts. For each of the `secrets`, which can be given as files,
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
    // What one file says in one way, a later one may say in the other.
    for (const [name, value] of values) {
      const other = others.get(name);
      if (value !== '' && other !== undefined && !values.has(other)) added.delete(other);
    }
    for (const [name, value] of values) {
      const other = others.get(name);
      // Whoever sets a secret to nothing wants none; `_FILE=` is what a template leaves where there is no file.
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
 * Headers as OpenTelemetry writes them for one variable: `name=value` separated by commas, values percent-encoded
 * (W3C Baggage). Null where a part is no such pair, or could not be sent. Names are in lower case.
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
