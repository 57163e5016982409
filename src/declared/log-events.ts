import type { Level, LogEvent } from './log-event.ts';
import { ANSWERS } from './log-events-answers.ts';
import { FOLLOWING } from './log-events-follow.ts';
import { PROCESS } from './log-events-process.ts';
import { STORE } from './log-events-store.ts';
import { CATALOG, PARTNER, REPRICING, TASK_LINES } from './log-events-sync.ts';

/**
 * Every event that a log line can have, by name. A line with another name, level or member does not compile, and
 * `npm run docs` writes the table of ops/logs.md from here. Units are in the names of members (`…Seconds`, `…Ms`,
 * `…PerMinute`); plain plurals are counts. Names never change, because programs search for them.
 */
export const LOG_EVENTS = {
  ...PROCESS,
  ...STORE,
  ...PARTNER,
  ...CATALOG,
  ...ANSWERS,
  ...REPRICING,
  ...TASK_LINES,
  ...FOLLOWING,
} as const;

export type EventName = keyof typeof LOG_EVENTS;
type LevelsOf<E extends EventName> = (typeof LOG_EVENTS)[E]['levels'][number];
export type FieldOf<E extends EventName> = (typeof LOG_EVENTS)[E]['fields'][number];
export type EventAt<L extends Level> = { [E in EventName]: L extends LevelsOf<E> ? E : never }[EventName];
/** A line: the event, and any of the members that it declares. */
export type EventLine<E extends EventName> = { readonly event: E } & { readonly [F in FieldOf<E>]?: unknown };
export type AnyLine<E extends EventName = EventName> = { [One in E]: EventLine<One> }[E];

/** Returns the declaration of an event. */
export function declared(event: EventName): LogEvent {
  return LOG_EVENTS[event];
}
