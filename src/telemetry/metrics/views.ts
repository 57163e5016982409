import { STORE_FAILURES, type StoreFailure } from '../../store/db.ts';
import type { MirrorStats } from '../../status/stats.ts';
import type { GaugeSample } from './sampled.ts';

/** What a scrape knows beside the mirror's statistics. */
export interface Moment {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Why Postgres refuses this daemon's writes, or null. */
  readonly storeFailure: StoreFailure | null;
}

/** A metric that is read from the mirror. */
export interface View {
  readonly name: string;
  readonly help: string;
  readonly samples: (stats: MirrorStats, moment: Moment) => readonly GaugeSample[];
}

/** Seconds since 1970; null for a time that is not known. */
export const seconds = (time: Date | null): number | null => (time === null ? null : time.getTime() / 1000);

export const one = (value: number | null): GaugeSample[] => [{ value }];

/** 1 for the `present` one of the values of a label, 0 for the others. */
export function oneOf(label: string, values: readonly string[], present: string | null): GaugeSample[] {
  return values.map((value) => ({ labels: { [label]: value }, value: value === present ? 1 : 0 }));
}

/** `samples`, and a 0 for each expected label set (members in the same order) that is not among them. */
export function filled(
  samples: readonly GaugeSample[],
  expected: readonly Readonly<Record<string, string>>[],
): GaugeSample[] {
  const present = new Set(samples.map(({ labels }) => JSON.stringify(labels)));
  const missing = expected.filter((labels) => !present.has(JSON.stringify(labels)));
  return [...samples, ...missing.map((labels) => ({ labels, value: 0 }))];
}

function isBackingOff({ pace }: MirrorStats, now: number): boolean {
  return pace.backingOffUntil !== null && pace.backingOffUntil.getTime() > now;
}

/** The machine: store, pace and tasks. */
export const MACHINE_VIEWS: readonly View[] = [
  {
    name: 'store_paused',
    help: '1 while this daemon pauses jobs because Postgres rejects writes, by cause; else 0.',
    samples: (_, { storeFailure }) => oneOf('because', STORE_FAILURES, storeFailure),
  },
  {
    name: 'task_last_success_timestamp_seconds',
    help: 'Time of the last success of a task, in any daemon; no series before the first. For reprice: the last applied bulk answer, accurate to five seconds.',
    samples: ({ tasks }) =>
      tasks.map(({ task, succeededAt }) => ({ labels: { task }, value: seconds(succeededAt) })),
  },
  {
    name: 'task_failures',
    help: 'Consecutive failures of a task, in any daemon; 0 after a success.',
    samples: ({ tasks }) => tasks.map(({ task, failures }) => ({ labels: { task }, value: failures })),
  },
  {
    name: 'request_ceiling_per_minute',
    help: 'Requests per minute that the mirror currently allows itself.',
    samples: (s) => one(s.pace.ceilingPerMinute),
  },
  {
    name: 'requests_in_window',
    help: "The mirror's requests in the current rolling window, of all daemons on this database.",
    samples: (s) => one(s.pace.usedInWindow),
  },
  {
    name: 'other_requests_in_window',
    help: "Requests of the account's other services in the current rolling window, as taken through catalog.take_request.",
    samples: (s) => one(s.pace.othersInWindow),
  },
  {
    name: 'requests_in_window_limit',
    help: "Maximum requests in a rolling window: the account's limit, and the mirror's current part of it beside the other services.",
    samples: ({ pace }) => [
      { labels: { of: 'account' }, value: pace.limitInWindow },
      { labels: { of: 'mirror' }, value: pace.mostInWindow },
    ],
  },
  {
    name: 'backing_off',
    help: '1 while a rejected request makes all daemons back off, else 0.',
    samples: (s, { now }) => one(isBackingOff(s, now) ? 1 : 0),
  },
  {
    name: 'refusals',
    help: "Consecutive rejected requests (403, 401, the authorizer's 500); 0 while requests succeed.",
    samples: (s) => one(s.pace.refused?.times ?? 0),
  },
  {
    name: 'refused_since_timestamp_seconds',
    help: 'Time of the first of the consecutive rejected requests; no series while requests succeed.',
    samples: (s) => one(seconds(s.pace.refused?.since ?? null)),
  },
  {
    name: 'credential_suspected',
    help: '1 while requests are rejected although the mirror sent no others in the window, else 0: the credential is wrong, or other traffic constantly fills the limit.',
    samples: (s) => one(s.pace.refused?.suspected === 'credential' ? 1 : 0),
  },
];
