import type { Clock } from '../../lib/clock.ts';
import { declared, type EventName } from '../../declared/log-events.ts';
import type { Log } from './logger.ts';
import type { Scrubber } from './scrub.ts';

/** A line of warn or worse, as it may be shown; lines alike that follow each other are one. */
export interface Problem {
  readonly at: Date;
  readonly level: 'warn' | 'error' | 'fatal';
  readonly event: string;
  readonly message: string;
  readonly times: number;
}

type Fields = { readonly event: EventName; readonly [member: string]: unknown };

const MOST = 20;
const LONGEST_MESSAGE = 300;

/** The same log, and the last problems that went through it, the newest first. */
export function rememberProblems(
  log: Log,
  scrubber: Scrubber,
  clock: Clock,
): { readonly log: Log; readonly problems: () => readonly Problem[] } {
  let kept: readonly Problem[] = [];

  function keep(level: Problem['level'], { event, ...fields }: Fields, text: string): void {
    const because = typeof fields['because'] === 'string' ? ` (${fields['because']})` : '';
    const clean = scrubber.text(`${text}${because}`.trim());
    const message = clean.length > LONGEST_MESSAGE ? `${clean.slice(0, LONGEST_MESSAGE)}…` : clean;
    const at = new Date(clock.now());
    const [last, ...rest] = kept;
    const again = last?.event === event && last.message === message && last.level === level;
    kept = again
      ? [{ ...last, at, times: last.times + 1 }, ...rest]
      : [{ at, level, event, message, times: 1 }, ...kept].slice(0, MOST);
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
