import type { Clock } from '../lib/clock.ts';
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

const MOST = 20;
const LONGEST_MESSAGE = 300;

/** The same log, and the last problems that went through it, the newest first. */
export function rememberProblems(
  log: Log,
  scrubber: Scrubber,
  clock: Clock,
): { readonly log: Log; readonly problems: () => readonly Problem[] } {
  let kept: readonly Problem[] = [];

  function keep(level: Problem['level'], fields: Parameters<Log['warn']>[0], text = ''): void {
    const because = typeof fields['because'] === 'string' ? ` (${fields['because']})` : '';
    const clean = scrubber.text(`${text}${because}`.trim());
    const message = clean.length > LONGEST_MESSAGE ? `${clean.slice(0, LONGEST_MESSAGE)}…` : clean;
    const event = scrubber.text(fields.event);
    const at = new Date(clock.now());
    const [last, ...rest] = kept;
    const again = last?.event === event && last.message === message && last.level === level;
    kept = again
      ? [{ ...last, at, times: last.times + 1 }, ...rest]
      : [{ at, level, event, message, times: 1 }, ...kept].slice(0, MOST);
  }

  const remembering = (inner: Log): Log => {
    const write =
      (level: Problem['level']): Log['warn'] =>
      (fields, message) => {
        keep(level, fields, message);
        inner[level](fields, message);
      };
    return {
      trace: (fields, message) => inner.trace(fields, message),
      debug: (fields, message) => inner.debug(fields, message),
      info: (fields, message) => inner.info(fields, message),
      warn: write('warn'),
      error: write('error'),
      fatal: write('fatal'),
      child: (bindings) => remembering(inner.child(bindings)),
    };
  };
  return { log: remembering(log), problems: () => kept };
}
