import { errorCode } from '../lib/errors.ts';
import { type Environment, given, inOneSpelling, isThere, type ReadFile } from './environment.ts';

/** An environment file that was read: its variables, and what is wrong with its lines. */
export interface EnvFile {
  readonly values: ReadonlyMap<string, string>;
  /** Each names its line, and holds nothing of what stands there: it may be a secret. */
  readonly problems: readonly string[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const QUOTES = ['"', "'"];

/**
 * Reads the lines of an environment file as Docker and systemd both read them: `NAME=value`, blank lines, and
 * comments that begin a line. A value is what stands behind the sign, without blanks around it; quotes around the
 * whole of it are dropped. Nothing else has a meaning: no escapes, no `$`, and a `#` inside a value is part of it.
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
export interface FromFile {
  readonly value: string;
  readonly path: string;
}

/**
 * What the files add to the environment, which takes precedence over them: a variable that is set there, be it to
 * nothing, is not the file's to set. Of several files the last one counts. Of `secrets` that can be given as files,
 * either name stands for both.
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
