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
 * Rules for settings: from the text of a variable to its value. What a rule is described by is what a person reads
 * behind "NAME: expected", whichever of its checks fails.
 */

/** A rule: reads a text, and says in its description what a valid one looks like. */
export type Rule = z.ZodType<unknown, string>;

/**
 * One setting. It has a `default`, or says in `unset` what applies without it (its value is null then), or has to be
 * given.
 */
export interface Setting {
  /**
   * Where its value is in `Config`: a group, and a name within it. Durations are in milliseconds, and their names end
   * in Ms.
   */
  readonly path: `${string}.${string}`;
  readonly rule: Rule;
  /** The default, as a person would write it into the environment. */
  readonly default?: string;
  readonly unset?: string;
  /** Its value is never shown, and may be given as a file (`NAME_FILE`) that is read again. */
  readonly secret?: true;
  /** A connection URL, which may carry a password and ask for TLS. */
  readonly connection?: true;
  readonly meaning: string;
}

/** setTimeout and AbortSignal.timeout fire at once beyond 2^31 - 1 ms: what becomes a timer stays below. */
const LONGEST_TIMER = 24 * DAY_MS;
const LONGEST_AGE = 3650 * DAY_MS;

/** A duration, in milliseconds: more than 0 or at least `min`, 0 too with `zero`, and at most `max`. */
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

/** A name for people, in any script. Nothing in it is invisible, breaks a line or turns the direction of reading. */
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

/** A URL to append a file's name to, without its trailing slash. */
export const linkBase = () =>
  z
    .string()
    .refine(isPlainWebUrl)
    .transform((text) => new URL(text).href.replace(/\/+$/, ''))
    .describe('an http:// or https:// URL without user, password, query or fragment');

/** A URL of a collector. What it asks for as a proof of identity goes into headers, which are kept out of the log. */
export const otlpEndpoint = () =>
  z
    .string()
    .refine(isPlainWebUrl)
    .describe('an http:// or https:// URL without user, password, query or fragment');

/** Headers for a collector, as OpenTelemetry writes them; their values are never shown. */
export const headerPairs = () =>
  z
    .string()
    .refine((text) => parseHeaderPairs(text) !== null)
    .describe('headers such as `api-key=value,x-tenant=value`, values percent-encoded');

/** The name of a JSON field that the partner does not document. */
export const field = () => pattern('a field name', /^\S(?:.*\S)?$/u);

export const choice = <const T extends readonly string[]>(options: T) =>
  z.enum(options).describe(`one of ${options.join(', ')}`);

/** One of two words, of which the first is true. */
export const either = (yes: string, no: string, letterCase: 'sensitive' | 'insensitive' = 'sensitive') =>
  z.stringbool({ truthy: [yes], falsy: [no], case: letterCase }).describe(`one of ${yes}, ${no}`);

/** Items separated by commas, trimmed, each once. */
export const list = (expected: string) =>
  z
    .string()
    .transform((text) => text.split(',').map((item) => item.trim()))
    .pipe(z.array(z.string().min(1)))
    .transform(unique)
    .describe(expected);

/** Host names separated by commas, each in its one spelling. No ports and no wildcards: what is meant is said. */
export const hostNames = () =>
  z
    .string()
    .transform((text) => text.split(',').map((item) => hostName(item.trim())))
    .pipe(z.array(z.string()).transform(unique))
    .describe('host names separated by commas, without port or wildcard (IPv6 addresses are always known)');

/** An address of this host, an IPv6 one also in the brackets of URLs, or a host name, without a port. */
export const hostOrAddress = () =>
  z
    .string()
    .transform((text) => (isIPv6(bareHost(text)) ? bareHost(text) : text))
    .pipe(z.string().refine((text) => isIP(text) !== 0 || hostName(text) !== null))
    .describe('a host name or an address such as 127.0.0.1, 0.0.0.0 or ::, without a port');

const unique = <T>(items: readonly T[]): readonly T[] => [...new Set(items)];

/**
 * `{base_url}` without a trailing slash, ready for a path to be appended. Its scheme is judged with
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

/** `public` (null), or origins of files separated by commas, each in its one spelling. */
export const filesOrigins = () =>
  z
    .string()
    .transform((text) =>
      text === 'public' ? null : text.split(',').map((item) => parseFilesOrigin(item.trim())),
    )
    .pipe(z.array(z.string()).transform(unique).nullable())
    .describe('public, or https:// origins separated by commas, without path (http on a loopback host only)');

// A control character (a newline left over above all) makes a corrupt Basic value (partner rule 5.1); a byte order
// mark or a replacement character means that a file was not plain UTF-8.
const UNCLEAN = /[\p{Cc}\uFEFF\uFFFD]/u;

/** A text of the `allowed` form that came whole: for settings whose value is never shown. */
export const secretText = (expected: string, allowed: RegExp) =>
  z
    .string()
    .regex(allowed)
    .refine((text) => !UNCLEAN.test(text))
    .describe(expected);

/**
 * Whether user and password can be read from a URL as the drivers do it: they throw otherwise, without the variable's
 * name.
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
 * Whether it names one host, as postgres.js reads it: of several, that takes the next one after each loss, and `pg`
 * can read none.
 */
function hasOneHost(text: string): boolean {
  if (socketDirectory(text) !== null) return true;
  const bare = withoutTls(text);
  const authority = bare.slice(bare.indexOf('://') + 3).split(/[?/]/, 1)[0] ?? '';
  const hosts = authority.slice(authority.indexOf('@') + 1);
  if (!isDecodable(hosts)) return false;
  // Where a login is not encoded, the driver and the URL do not find the same.
  const named = [decodeURIComponent(hosts), URL.parse(bare)?.hostname ?? ''];
  return named.every((name) => !name.includes(','));
}

const connectionUrl = (what: string, allowed: RegExp) =>
  secretText(
    `${what}, special characters in user and password percent-encoded (# as %23, / as %2F, % as %25)`,
    allowed,
  ).refine(hasReadableLogin);

/** A URL of one host that postgres.js can read. */
export const postgresUrl = () =>
  connectionUrl(
    'a postgres:// or postgresql:// URL of one host (an IPv6 address in brackets) and of a database without ? and # in its name',
    /^postgres(?:ql)?:\/\/\S+$/iu,
  )
    .refine(hasOneHost)
    // One of the two drivers cannot read the name of such a database.
    .refine(
      (text) => isDecodable(URL.parse(withoutTls(text))?.pathname ?? '') && !/[?#]/.test(databaseOf(text)),
    );

/**
 * A URL that ioredis can read, and of which it reads no options that are the program's: any parameter would be one. Of
 * a path that is no number it makes a database that there is not.
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

/** A proxy's URL, which may hold a login: its value is never shown. */
export const proxyUrl = () =>
  z
    .string()
    .refine((text) => parseProxy(text) !== null)
    .describe(
      'an http:// or https:// URL such as http://proxy.example:3128, a login before the host percent-encoded, without path',
    );

/** NO_PROXY. Other programs use it, too, and may know entries that are none here: those name no host. */
export const proxyExceptions = () =>
  z
    .string()
    .transform((text): readonly string[] => text.split(/[,\s]+/).filter((entry) => entry !== ''))
    .describe('hosts separated by commas');
