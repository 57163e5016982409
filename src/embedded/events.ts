import type { EventName, FieldOf } from '../declared/log-events.ts';

/** Takes what happens to the embedded Postgres: an event of the log, with its members. */
export type EmbeddedLog = <E extends Extract<EventName, `embedded.${string}`>>(
  event: E,
  detail: { readonly [F in FieldOf<E>]: unknown },
) => void;
