import { STORE_TROUBLES, type StoreTrouble } from '../../store/db.ts';
import type { MirrorStats } from '../../status/stats.ts';
import type { GaugeSample } from './sampled.ts';

/** What a scrape knows beside the mirror's statistics. */
export interface Moment {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Why Postgres refuses this daemon's writes, or null. */
  readonly storeTrouble: StoreTrouble | null;
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

/** What the mirror is at, the most hindering first: the first that holds is its state. */
const STATES = ['store-paused', 'backing-off', 'filling', 'stale', 'incident', 'following'] as const;
/** With no more than this part of the SKUs never priced, the mirror is filled: new ones come every day. */
const UNPRICED_WHEN_FILLED = 0.01;

function isFilling({ manifestAppliedAt, skus }: MirrorStats): boolean {
  if (manifestAppliedAt === null) return true;
  const sum = (rows: MirrorStats['skus']) => rows.reduce((n, { count }) => n + count, 0);
  return sum(skus.filter(({ state }) => state === 'pending')) > sum(skus) * UNPRICED_WHEN_FILLED;
}

function isBackingOff({ pace }: MirrorStats, now: number): boolean {
  return pace.backingOffUntil !== null && pace.backingOffUntil.getTime() > now;
}

function stateOf(stats: MirrorStats, { now, storeTrouble }: Moment): (typeof STATES)[number] {
  if (storeTrouble !== null) return 'store-paused';
  if (isBackingOff(stats, now)) return 'backing-off';
  if (isFilling(stats)) return 'filling';
  if (stats.catalogState === 'stale') return 'stale';
  return stats.incident === null ? 'following' : 'incident';
}

/** The state of the machine: pace, tasks, and what it is at. */
export const MACHINE_VIEWS: readonly View[] = [
  {
    name: 'state',
    help: 'What the mirror is at: 1 for the present state, else 0. Of several that hold, the most hindering: store-paused, backing-off, filling, stale, incident; else following.',
    samples: (s, moment) => oneOf('state', STATES, stateOf(s, moment)),
  },
  {
    name: 'store_paused',
    help: '1 while this daemon holds jobs back because Postgres refuses its writes, by why; else 0.',
    samples: (_, { storeTrouble }) => oneOf('because', STORE_TROUBLES, storeTrouble),
  },
  {
    name: 'task_last_success_timestamp_seconds',
    help: 'When a task last did its work, in any daemon; no series before. For reprice: a bulk answer applied, to five seconds.',
    samples: ({ tasks }) =>
      tasks.map(({ task, succeededAt }) => ({ labels: { task }, value: seconds(succeededAt) })),
  },
  {
    name: 'task_failures',
    help: 'Failures of a task in a row, in any daemon; 0 after a success.',
    samples: ({ tasks }) => tasks.map(({ task, failures }) => ({ labels: { task }, value: failures })),
  },
  {
    name: 'request_ceiling_per_minute',
    help: 'Requests a minute that the mirror allows itself at present.',
    samples: (s) => one(s.pace.ceilingPerMinute),
  },
  {
    name: 'requests_in_window',
    help: "The mirror's requests in the present rolling window, of all daemons that share the ledger.",
    samples: (s) => one(s.pace.usedInWindow),
  },
  {
    name: 'other_requests_in_window',
    help: "Requests of the account's other users in the present rolling window, as told through catalog.take_request.",
    samples: (s) => one(s.pace.othersInWindow),
  },
  {
    name: 'requests_in_window_limit',
    help: "Most requests in a rolling window: the account's limit, and the mirror's part of it beside the present other users.",
    samples: ({ pace }) => [
      { labels: { of: 'account' }, value: pace.limitInWindow },
      { labels: { of: 'mirror' }, value: pace.mostInWindow },
    ],
  },
  {
    name: 'backing_off',
    help: '1 while a refusal keeps the whole fleet silent, else 0.',
    samples: (s, { now }) => one(isBackingOff(s, now) ? 1 : 0),
  },
  {
    name: 'refusals',
    help: "Refusals in a row (403, 401, the authorizer's 500) with nothing let through in between; 0 while requests pass.",
    samples: (s) => one(s.pace.refused?.times ?? 0),
  },
  {
    name: 'refused_since_timestamp_seconds',
    help: 'When the first of the present refusals came; no series while requests pass.',
    samples: (s) => one(seconds(s.pace.refused?.since ?? null)),
  },
  {
    name: 'credential_suspected',
    help: '1 while refusals outlive windows without other own requests, else 0: a wrong credential, or other traffic that fills the limit all the time.',
    samples: (s) => one(s.pace.refused?.suspected === 'credential' ? 1 : 0),
  },
];
