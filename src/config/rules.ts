import { isIP, isIPv6 } from 'node:net';
import { z } from 'zod';
import { databaseOf, socketDirectory } from '../lib/connection-url.ts';
import { DAY_MS, formatDuration, parseDuration } from '../lib/duration.ts';
import { bareHost, hostName } from '../lib/host-name.ts';
import { withoutTls } from '../lib/tls.ts';
import { checkBaseUrl, parseFilesOrigin } from '../partner/origin.ts';
import { parseProxy } from '../partner/proxy.ts';
import { parseHeaderPairs } from './environment.ts';

/*
 * Rules for settings: from the text of a variable to its value. The description of a rule is what a person reads after
 * "NAME: expected", whichever of its checks fails.
 */

/** A rule: reads a text. Its description says what a valid one looks like. */
export type Rule = z.ZodType<unknown, string>;

/**
 * One setting. It has a `default`, or `unset` says what applies without it (its value is then null), or it is required.
 */
export interface Setting {
  /**
   * Where its value is in `Config`: a group and a name within it. Durations are in milliseconds, and their names end in
   * Ms.
   */
  readonly path: `${string}.${string}`;
  readonly rule: Rule;
  /** The default, as a person would write it into the environment. */
  readonly default?: string;
  readonly unset?: string;
  /** The value is never shown, and may be given as a file (`NAME_FILE`) that is read again. */
  readonly secret?: true;
  /** A connection URL, which may contain a password and ask for TLS. */
  readonly connection?: true;
  readonly meaning: string;
}

/** setTimeout and AbortSignal.timeout fire at once beyond 2^31 - 1 ms, so durations of timers stay below. */
const LONGEST_TIMER = 24 * DAY_MS;
const LONGEST_AGE = 3650 * DAY_MS;

/** A duration in milliseconds: more than 0 or at least `min`, also 0 with `zero`, and at most `max`. */
export function duration({ zero = false, min, max = LONGEST_AGE }: DurationRange = {}) {
  const least =
    min === undefined
      ? zero
        ? '0 or more'
        : 'more than 0'
      : `${zero ? '0, or ' : ''}at least ${formatDuration(min)}`;
  const range = z
    .number()
    .min(min ?? 1)
    .max(max);
  return z
    .string()
    .transform((text) => parseDuration(text) ?? Number.NaN)
    .pipe(zero ? z.literal(0).or(range) : range)
    .describe(`a duration such as 500ms, 30s, 5m, 6h or 7d, ${least} and at most ${formatDuration(max)}`);
}

interface DurationRange {
  readonly zero?: boolean;
  readonly min?: number;
  readonly max?: number;
}

/** A duration in milliseconds, at most what a Node.js timer can wait. */
export const timer = () => duration({ max: LONGEST_TIMER });

export const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .describe(`a whole number from ${min} to ${max}`);

/** A fraction in (0, 1]. */
export const share = () =>
  z
    .string()
    .regex(/^\d*\.?\d+$/)
    .transform(Number)
    .pipe(z.number().gt(0).max(1))
    .describe('a share greater than 0 and at most 1, such as 0.6');

/** A fraction in [0, 1]. */
export const ratio = () =>
  z
    .string()
    .regex(/^\d*\.?\d+$/)
    .transform(Number)
    .pipe(z.number().min(0).max(1))
    .describe('a number from 0 to 1');

export const pattern = (expected: string, allowed: RegExp) => z.string().regex(allowed).describe(expected);

/** A name for people, in any script, without invisible characters, line breaks and changes of the reading direction. */
export const label = (longest: number) =>
  pattern(
    `1 to ${longest} characters, none of them invisible`,
    new RegExp(String.raw`^[^\p{C}\p{Zl}\p{Zp}]{1,${longest}}$`, 'u'),
  );

function isPlainWebUrl(text: string): boolean {
  const url = URL.parse(text);
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  return isWeb && url.username === '' && url.password === '' && !/[?#]/.test(text);
}

/** A URL that file names are appended to, without its trailing slash. */
export const linkBase = () =>
  z
    .string()
    .refine(isPlainWebUrl)
    .transform((text) => new URL(text).href.replace(/\/+$/, ''))
    .describe('an http:// or https:// URL without user, password, query or fragment');

/** A collector's URL. Credentials for it belong in headers, which are kept out of the log. */
export const otlpEndpoint = () =>
  z
    .string()
    .refine(isPlainWebUrl)
    .describe('an http:// or https:// URL without user, password, query or fragment');

/** Headers for a collector, as OpenTelemetry writes them. Their values are never shown. */
export const headerPairs = () =>
  z
    .string()
    .refine((text) => parseHeaderPairs(text) !== null)
    .describe('headers such as `api-key=value,x-tenant=value`, values percent-encoded');

/** The name of a JSON field that the partner does not document. */
export const field = () => pattern('a field name', /^\S(?:.*\S)?$/u);

export const choice = <const T extends readonly string[]>(options: T) =>
  z.enum(options).describe(`one of ${options.join(', ')}`);

/** One of two words; the first means true. */
export const either = (yes: string, no: string, letterCase: 'sensitive' | 'insensitive' = 'sensitive') =>
  z.stringbool({ truthy: [yes], falsy: [no], case: letterCase }).describe(`one of ${yes}, ${no}`);

/** Items separated by commas, trimmed and without duplicates. */
export const list = (expected: string) =>
  z
    .string()
    .transform((text) => text.split(',').map((item) => item.trim()))
    .pipe(z.array(z.string().min(1)))
    .transform(unique)
    .describe(expected);

/** Host names separated by commas, normalized. Ports and wildcards are refused, so that every name is explicit. */
export const hostNames = () =>
  z
    .string()
    .transform((text) => text.split(',').map((item) => hostName(item.trim())))
    .pipe(z.array(z.string()).transform(unique))
    .describe('host names separated by commas, without port or wildcard (IPv6 addresses are always known)');

/** A host name, or an address of this host, without a port. An IPv6 address may be in the brackets of URLs. */
export const hostOrAddress = () =>
  z
    .string()
    .transform((text) => (isIPv6(bareHost(text)) ? bareHost(text) : text))
    .pipe(z.string().refine((text) => isIP(text) !== 0 || hostName(text) !== null))
    .describe('a host name or an address such as 127.0.0.1, 0.0.0.0 or ::, without a port');

const unique = <T>(items: readonly T[]): readonly T[] => [...new Set(items)];

/**
 * `{base_url}` without a trailing slash, ready for a path to be appended. Its scheme is checked together with
 * PARTNER_ALLOW_INSECURE.
 */
export const baseUrl = () =>
  z
    .string()
    .refine((text) => {
      const url = URL.parse(text);
      return (
        url !== null &&
        url.hostname !== '' &&
        !/[?#]/.test(text) &&
        checkBaseUrl(url, { allowInsecure: true }) === null
      );
    })
    .transform((text) => new URL(text).href.replace(/\/+$/, ''))
    .describe('an https:// URL without user, password, query or fragment');

/** `public` (null), or normalized origins of files separated by commas. */
export const filesOrigins = () =>
  z
    .string()
    .transform((text) =>
      text === 'public' ? null : text.split(',').map((item) => parseFilesOrigin(item.trim())),
    )
    .pipe(z.array(z.string()).transform(unique).nullable())
    .describe('public, or https:// origins separated by commas, without path (http on a loopback host only)');

// A control character (usually a leftover newline) corrupts the Basic value (partner rule 5.1). A byte order mark or a
// replacement character means that a file was not plain UTF-8.
const UNCLEAN = /[\p{Cc}\uFEFF\uFFFD]/u;

/** An undamaged text of the `allowed` form, for settings whose value is never shown. */
export const secretText = (expected: string, allowed: RegExp) =>
  z
    .string()
    .regex(allowed)
    .refine((text) => !UNCLEAN.test(text))
    .describe(expected);

/**
 * Returns whether the drivers can read user and password from a URL. Otherwise they throw errors that do not name the
 * variable.
 */
function hasReadableLogin(text: string): boolean {
  const url = URL.parse(withoutTls(text));
  return url !== null && isDecodable(url.username) && isDecodable(url.password);
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns whether a URL names one host as postgres.js reads it. With several, postgres.js takes the next one after each
 * connection loss, and `pg` cannot read any.
 */
function hasOneHost(text: string): boolean {
  if (socketDirectory(text) !== null) return true;
  const bare = withoutTls(text);
  const authority = bare.slice(bare.indexOf('://') + 3).split(/[?/]/, 1)[0] ?? '';
  const hosts = authority.slice(authority.indexOf('@') + 1);
  if (!isDecodable(hosts)) return false;
  // If a login is not encoded, the driver and `URL` find different hosts.
  const named = [decodeURIComponent(hosts), URL.parse(bare)?.hostname ?? ''];
  return named.every((name) => !name.includes(','));
}

const connectionUrl = (what: string, allowed: RegExp) =>
  secretText(
    `${what}, special characters in user and password percent-encoded (# as %23, / as %2F, % as %25)`,
    allowed,
  ).refine(hasReadableLogin);

/** A Postgres URL of one host that postgres.js can read. */
export const postgresUrl = () =>
  connectionUrl(
    'a postgres:// or postgresql:// URL of one host (an IPv6 address in brackets) and of a database without ? and # in its name',
    /^postgres(?:ql)?:\/\/\S+$/iu,
  )
    .refine(hasOneHost)
    // One of the two drivers cannot read such a database name.
    .refine(
      (text) => isDecodable(URL.parse(withoutTls(text))?.pathname ?? '') && !/[?#]/.test(databaseOf(text)),
    );

/**
 * A URL that ioredis can read. It may not set options that belong to the program, and ioredis takes every parameter for
 * an option. A path that is not a number would select a database that does not exist.
 */
export const redisUrl = () =>
  connectionUrl(
    'a redis:// or rediss:// URL whose path is a database number or absent, without parameters but those of TLS and family (0, 4 or 6)',
    /^rediss?:\/\/\S+$/iu,
  ).refine((text) => {
    const url = URL.parse(withoutTls(text));
    return (
      url !== null &&
      /^(\/\d*)?$/.test(url.pathname) &&
      [...url.searchParams].every(([name, value]) => name === 'family' && /^[046]$/.test(value))
    );
  });

/** A proxy's URL. It may contain a login, so its value is never shown. */
export const proxyUrl = () =>
  z
    .string()
    .refine((text) => parseProxy(text) !== null)
    .describe(
      'an http:// or https:// URL such as http://proxy.example:3128, a login before the host percent-encoded, without path',
    );

/** NO_PROXY. Other programs use it, too, and may know entries that are invalid here; those match no host. */
export const proxyExceptions = () =>
  z
    .string()
    .transform((text): readonly string[] => text.split(/[,\s]+/).filter((entry) => entry !== ''))
    .describe('hosts separated by commas');
