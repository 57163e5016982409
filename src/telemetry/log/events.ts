import type { Level, LogEvent } from './event.ts';
import { PROCESS, STORE } from './events-process.ts';
import { CATALOG, PARTNER, REPRICING, TASK_LINES } from './events-sync.ts';

/*
 * Every event that a log line can have: a line with another name does not compile, and ops/logs.md is held against this by
 * a test. Units are in the names of members (`…Seconds`, `…Ms`, `…PerMinute`); plain plurals are counts.
 */

/** Every event, by name. */
export const LOG_EVENTS = {
  ...PROCESS,
  ...STORE,
  ...PARTNER,
  ...CATALOG,
  ...REPRICING,
  ...TASK_LINES,
} as const;

export type EventName = keyof typeof LOG_EVENTS;
type LevelsOf<E extends EventName> = (typeof LOG_EVENTS)[E]['levels'][number];
/** Members that a line with this event may carry. */
export type FieldOf<E extends EventName> = (typeof LOG_EVENTS)[E]['fields'][number];
/** Events that are declared for a level. */
export type EventAt<L extends Level> = { [E in EventName]: L extends LevelsOf<E> ? E : never }[EventName];

/** The declaration of an event. */
export function declared(event: EventName): LogEvent {
  return LOG_EVENTS[event];
}
