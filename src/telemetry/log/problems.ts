import { declared, type EventName } from '../../declared/log-events.ts';
import type { Clock } from '../../lib/clock.ts';
import { formatAge } from '../../lib/duration.ts';
import { count } from '../../lib/format.ts';
import { adviceOn } from '../../store/connection/remedies.ts';
import type { Log } from './logger.ts';
import type { Scrubber } from './scrub.ts';

/** A line of warn or worse, as it may be shown. Consecutive equal lines are one. */
export interface Problem {
  readonly at: Date;
  readonly level: 'warn' | 'error' | 'fatal';
  readonly event: string;
  readonly message: string;
  /** What can be done about it, or what happens next by itself; null: neither is known. */
  readonly hint: string | null;
  readonly times: number;
}

type Fields = { readonly event: EventName; readonly [member: string]: unknown };

const MOST = 20;
const LONGEST_TEXT = 300;
/** How many SKUs a message names. */
const NAMED_SKUS = 3;

/** Formats a member of a line for a sentence: durations with their unit; null unless it is text, a number or a date. */
function inWords(name: string, value: unknown): string | null {
  if (typeof value === 'number') return name.endsWith('Ms') ? formatAge(value / 1000) : count(value);
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'string' ? value : null;
}

/** Replaces the names of members in a text by their values, because whoever reads the text does not see the line. */
const filledIn = (text: string, fields: Fields): string =>
  text.replace(/\b[a-z]+[A-Z]\w*\b/g, (name) => inWords(name, fields[name]) ?? name);

/** Returns what to do, as known to whoever met the problem, or else what its event declares as next. */
function hintOf({ event, ...fields }: Fields): string | null {
  const { hint, err } = fields;
  if (typeof hint === 'string') return hint;
  const known = adviceOn(err).hint;
  if (known !== null) return known;
  const { next } = declared(event);
  return next === null ? null : filledIn(next, { event, ...fields });
}

/** Returns the reason and the SKUs that a line has beside its message. */
function details({ because, sku, skus }: Fields): string {
  const named: readonly unknown[] = Array.isArray(skus) ? skus : [sku];
  const texts = named.filter((one) => typeof one === 'string');
  const more = texts.length > NAMED_SKUS ? ', …' : '';
  const parts = [
    ...(typeof because === 'string' ? [because] : []),
    ...(texts.length > 0 ? [`${texts.slice(0, NAMED_SKUS).join(', ')}${more}`] : []),
  ];
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`;
}

/** Wraps a log, and remembers the last problems that went through it, newest first. */
export function rememberProblems(
  log: Log,
  scrubber: Scrubber,
  clock: Clock,
): { readonly log: Log; readonly problems: () => readonly Problem[] } {
  let kept: readonly Problem[] = [];

  function shown(text: string): string {
    const clean = scrubber.text(text.trim());
    return clean.length > LONGEST_TEXT ? `${clean.slice(0, LONGEST_TEXT)}…` : clean;
  }

  function keep(level: Problem['level'], fields: Fields, text: string): void {
    const { event } = fields;
    const message = shown(`${text}${details(fields)}`);
    const next = hintOf(fields);
    const hint = next === null ? null : shown(next);
    const at = new Date(clock.now());
    const [last, ...rest] = kept;
    const again = last?.event === event && last.message === message && last.level === level;
    kept = again
      ? [{ ...last, at, hint, times: last.times + 1 }, ...rest]
      : [{ at, level, event, message, hint, times: 1 }, ...kept].slice(0, MOST);
  }

  function remembering<L extends Problem['level']>(level: L): Log[L] {
    return (fields: Fields, message?: string): void => {
      keep(level, fields, message ?? declared(fields.event).says);
      (log[level] as (fields: Fields, message?: string) => void)(fields, message);
    };
  }
  const remembered: Log = {
    ...log,
    warn: remembering('warn'),
    error: remembering('error'),
    fatal: remembering('fatal'),
  };
  return { log: remembered, problems: () => kept };
}
