import { decoded } from '../lib/connection-url.ts';
import { errorCode } from '../lib/errors.ts';
import { parseProxy } from '../partner/proxy.ts';
import { SHORTEST_SECRET } from '../partner/secret-url.ts';
import { type ConfigProblem, type Environment, given, type ReadFile, spelling } from './environment.ts';
import type { Rule } from './rules.ts';

/** A secret that may be in a file and be rotated there. */
export interface SecretSource {
  read(): string;
  /**
   * Reads the file again, if there is one. Returns whether the value has changed; an unreadable or invalid file changes
   * nothing.
   */
  refresh(): boolean;
}

/**
 * A source that remembers its first value, which a driver may keep, and the latest ones, because a log line may still
 * contain the one before a rotation.
 */
export interface KeptSecret extends SecretSource {
  readonly seen: ReadonlySet<string>;
}

/**
 * How many values of a source are remembered. Every log line is searched for all of them, and a database's password may
 * change every few minutes.
 */
const MOST_SEEN = 8;

/** Drops one trailing newline, which is the editor's, not the secret's. */
const withoutNewline = (text: string): string => text.replace(/\r?\n$/, '');

function keepSecret(
  first: string,
  reread: (() => string) | null,
  accepts: (text: string) => boolean,
): KeptSecret {
  let value = first;
  const seen = new Set([first]);
  return {
    seen,
    read: () => value,
    refresh() {
      if (reread === null) return false;
      let next: string;
      try {
        next = reread();
      } catch {
        return false;
      }
      if (next === value || !accepts(next)) return false;
      value = next;
      // Moved behind those that have been seen since.
      seen.delete(next);
      seen.add(next);
      const oldest = [...seen].find((old) => old !== first);
      if (seen.size > MOST_SEEN && oldest !== undefined) seen.delete(oldest);
      return true;
    },
  };
}

/**
 * Reads a † variable from the environment or from the file that `NAME_FILE` names.
 * Returns the source, null if neither is set, or what is wrong (never with the value).
 */
export function readSecret(
  name: string,
  rule: Rule,
  env: Environment,
  readFile: ReadFile,
): KeptSecret | null | ConfigProblem {
  const accepts = (text: string) => rule.safeParse(text).success;
  const expected = rule.description ?? '';
  const value = given(env, name);
  const path = given(env, `${name}_FILE`);
  const spelt = spelling(env, name);
  if (value !== undefined && path !== undefined) {
    return { variable: spelt, expected: `either ${spelt} or ${name}_FILE, not both` };
  }
  if (path !== undefined) {
    const variable = `${name}_FILE`;
    const reread = () => withoutNewline(readFile(path));
    try {
      const content = reread();
      if (accepts(content)) return keepSecret(content, reread, accepts);
      return {
        variable,
        expected: `a file that holds ${expected}, and nothing else`,
        got: path,
        ...lintNote(content),
      };
    } catch (error) {
      // The path is not shown, because the commonest mistake is to put the secret itself there.
      const code = errorCode(error);
      return {
        variable,
        expected: `the path of a readable file${code === null ? '' : ` (${code})`}`,
      };
    }
  }
  if (value === undefined) return null;
  return accepts(value)
    ? keepSecret(value, null, accepts)
    : { variable: spelt, expected, ...lintNote(value) };
}

function lintNote(value: string): { but?: string } {
  const found = lintCredential(value);
  return found.length === 0 ? {} : { but: `the value ${found.join(' and ')}` };
}

/** Returns a connection URL's secrets: the whole URL, and each way its password may be read (literally and decoded). */
export function urlSecrets(url: string): string[] {
  const authority = /^[^:]+:\/\/([^/?#]*)/.exec(url)?.[1] ?? '';
  const inAuthority = authority.includes('@')
    ? authority.slice(0, authority.lastIndexOf('@')).split(':').slice(1).join(':')
    : '';
  const inQuery = [...url.matchAll(/[?&]password=([^&#]*)/g)].map(([, password]) => password ?? '');
  return [...proxySecrets(url), ...[inAuthority, ...inQuery].flatMap((text) => [text, decoded(text)])].filter(
    (text) => text !== '',
  );
}

/**
 * Returns the secrets of a proxy's URL: the URL, its login as it is sent, and a name without a password, which is a
 * token. A URL without a login has none and may be shown.
 */
function proxySecrets(url: string): string[] {
  const proxy = /^https?:/i.test(url) ? parseProxy(url) : null;
  if (proxy === null) return [url];
  if (proxy.authorization === null) return [];
  const { username, password } = new URL(url);
  const names = password === '' ? [username, decoded(username)] : [];
  return [url, proxy.authorization.slice('Basic '.length), ...names];
}

/**
 * Returns the values of headers written as `name=value,…` (percent-encoded), and the part after a scheme such as
 * Bearer.
 */
export function headerSecrets(text: string): string[] {
  return text
    .split(',')
    .map((pair) => pair.slice(pair.indexOf('=') + 1).trim())
    .flatMap((value) => [value, decoded(value)])
    .flatMap((value) => [value, value.replace(/^(?:basic|bearer)(?:\s+|%20)/i, '')])
    .filter(({ length }) => length >= SHORTEST_SECRET);
}

const QUOTED = /^(["'`]).*\1$/su;

/**
 * Finds signs that a credential was damaged on its way, such as leftovers of a shell or an editor (partner rule 5.1: a
 * trailing newline is enough for a 403). Takes the value as given; returns what is wrong, in words that contain no part
 * of it.
 */
export function lintCredential(text: string): string[] {
  const found: string[] = [];
  const say = (is: boolean, words: string) => {
    if (is) found.push(words);
  };
  say(text.endsWith('\r\n'), 'ends in a newline (CR LF)');
  say(/[^\r]\n$|^\n$/.test(text), 'ends in a newline');
  say(text.endsWith('\r'), 'ends in a carriage return (CR)');
  say(/^[\r\n]/.test(text) && text.length > 1, 'begins with a newline');
  const lines = text.replace(/^[\r\n]+|[\r\n]+$/g, '');
  say(/[\r\n]/.test(lines), 'has more than one line');
  say(lines.startsWith('\uFEFF'), 'begins with a byte order mark: the file was not saved as plain UTF-8');
  say(lines.includes('\uFFFD'), 'contains bytes that are not UTF-8');
  const plain = lines.replace(/^\uFEFF/, '');
  say(/^[^\S\r\n]|[^\S\r\n]$/u.test(plain), 'begins or ends in white space');
  say(QUOTED.test(plain.trim()) && plain.trim().length > 1, 'is wrapped in quotes');
  say(
    /^basic\s/i.test(plain.trim()),
    'begins with "Basic ": give only the value, the header is built from it',
  );
  say(/\p{Cc}/u.test(plain.trim().replaceAll(/[\r\n]/g, '')), 'contains a control character');
  return found;
}

/** Returns whether the text is `api_key:secret` in base64: the value of the header in place of one half of it. */
export function isBasicPair(text: string, apiKey: string): boolean {
  if (!/^[A-Za-z0-9+/]{8,}={0,2}$/.test(text)) return false;
  return Buffer.from(text, 'base64').toString('utf8').startsWith(`${apiKey}:`);
}
