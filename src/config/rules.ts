import { checkBaseUrl, parseFilesOrigin } from '../partner/origin.ts';
import { formatDuration, parseDuration } from '../lib/duration.ts';

/** Which commands need a variable: those that call the partner, those that only use the mirror, or the health endpoint alone. */
export type Scope = 'partner' | 'mirror' | 'http';

interface Common {
  readonly scope: Scope;
  readonly meaning: string;
  /** What a valid value looks like, for a person. */
  readonly expected: string;
  /** What applies when the variable is unset, as a person would write it; null: it has to be given. */
  readonly default: string | null;
}

/** A variable whose value may be shown. `parse` returns undefined for a value that is not as `expected`. */
export interface PlainVariable<T> extends Common {
  readonly secret: false;
  readonly parse: (text: string) => T | undefined;
  /** The value when the variable is unset; absent where it has to be given. */
  readonly fallback?: T;
}

/** A † variable: its value is never shown, and it may be given as a file (`NAME_FILE`). */
export interface SecretVariable<Optional extends boolean> extends Common {
  readonly secret: true;
  readonly optional: Optional;
  readonly accepts: (text: string) => boolean;
}

/** A variable of its own kind: a rule, and then `required()` or a fallback (with the way it is shown). */
export function plain<T>(scope: Scope, meaning: string, rule: Pick<PlainVariable<T>, 'expected' | 'parse'>) {
  return {
    required: (): PlainVariable<T> => ({ secret: false, scope, meaning, default: null, ...rule }),
    or: (fallback: T, shown: string): PlainVariable<T> => ({
      secret: false,
      scope,
      meaning,
      default: shown,
      fallback,
      ...rule,
    }),
  };
}

const DAY = 86_400_000;
/** setTimeout and AbortSignal.timeout fire at once beyond 2^31 - 1 ms: what becomes a timer stays below. */
const LONGEST_TIMER = 24 * DAY;
const LONGEST_AGE = 3650 * DAY;

/** A duration in milliseconds, more than 0 or at least `range.min` (ms), 0 too with `range.zero`, and at most `range.max` (ms). */
export function duration(
  scope: Scope,
  fallback: string,
  meaning: string,
  range: { zero?: boolean; min?: number; max?: number } = {},
) {
  const max = range.max ?? LONGEST_AGE;
  const min = range.min ?? 1;
  const least = leastOf(range.zero ?? false, range.min);
  return plain<number>(scope, meaning, {
    expected: `a duration such as 500ms, 30s, 5m, 6h or 7d, ${least} and at most ${formatDuration(max)}`,
    parse: (text) => {
      const ms = parseDuration(text);
      return ms !== null && ms <= max && (ms >= min || (ms === 0 && range.zero)) ? ms : undefined;
    },
  }).or(parseDuration(fallback) ?? 0, fallback);
}

function leastOf(zero: boolean, min: number | undefined): string {
  if (min === undefined) return zero ? '0 or more' : 'more than 0';
  return `${zero ? '0, or ' : ''}at least ${formatDuration(min)}`;
}

/** A duration that becomes a timer. */
export const timer = (scope: Scope, fallback: string, meaning: string) =>
  duration(scope, fallback, meaning, { max: LONGEST_TIMER });

/** A whole number from `min` to `max`. */
export function integer(scope: Scope, fallback: number, min: number, max: number, meaning: string) {
  return plain<number>(scope, meaning, {
    expected: `a whole number from ${min} to ${max}`,
    parse: (text) => {
      const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? value : undefined;
    },
  }).or(fallback, String(fallback));
}

/** A part of something: in (0, 1]. */
export function share(scope: Scope, fallback: number, meaning: string) {
  return plain<number>(scope, meaning, {
    expected: 'a share greater than 0 and at most 1, such as 0.6',
    parse: (text) => {
      const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
      return value > 0 && value <= 1 ? value : undefined;
    },
  }).or(fallback, String(fallback));
}

/** A text of the `allowed` form. */
export const pattern = (scope: Scope, meaning: string, expected: string, allowed: RegExp) =>
  plain<string>(scope, meaning, { expected, parse: (text) => (allowed.test(text) ? text : undefined) });

const FIELD = /^\S(?:.*\S)?$/u;
/** The name of a JSON field that the partner does not document. */
export const field = (fallback: string, meaning: string) =>
  pattern('partner', meaning, 'a field name', FIELD).or(fallback, fallback);

/** The name of a JSON field, null while it is to be found by its value's shape. */
export const foundByShape = (meaning: string) =>
  plain<string | null>('partner', meaning, {
    expected: 'a field name',
    parse: (text) => (FIELD.test(text) ? text : undefined),
  }).or(null, 'detected by shape');

/** One of a few words. */
export function choice<const T extends string>(
  scope: Scope,
  fallback: NoInfer<T>,
  options: readonly T[],
  meaning: string,
) {
  return plain<T>(scope, meaning, {
    expected: `one of ${options.join(', ')}`,
    parse: (text) => options.find((option) => option === text),
  }).or(fallback, fallback);
}

// A control character (a newline left over above all) makes a corrupt Basic value (partner rule 5.1); a byte order mark or
// a replacement character means that a file was not plain UTF-8.
const UNCLEAN = /[\p{Cc}\uFEFF\uFFFD]/u;

/** A † variable; `unset` tells what applies without it. */
export function secret<Optional extends boolean>(
  scope: Scope,
  optional: Optional,
  unset: string | null,
  meaning: string,
  expected: string,
  allowed: RegExp,
): SecretVariable<Optional> {
  const accepts = (text: string) => allowed.test(text) && !UNCLEAN.test(text);
  return { secret: true, scope, optional, default: unset, meaning, expected, accepts };
}

/** `{base_url}` without a trailing slash, ready for a path to be appended. Its scheme is judged with PARTNER_ALLOW_INSECURE. */
export function parseBaseUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || url.hostname === '' || /[?#]/.test(text) || checkBaseUrl(url, true) !== null)
    return undefined;
  return url.href.replace(/\/+$/, '');
}

/** Comma-separated items, trimmed, each once; undefined where one is empty. */
export function parseList(text: string): readonly string[] | undefined {
  const items = text.split(',').map((item) => item.trim());
  return items.includes('') ? undefined : [...new Set(items)];
}

/** Comma-separated origins of files, each in its one spelling; undefined where one is none. */
export function parseOrigins(text: string): readonly string[] | undefined {
  const origins = text.split(',').map((item) => parseFilesOrigin(item.trim()));
  return origins.every((origin) => origin !== null) ? [...new Set(origins)] : undefined;
}
