import type { StoreTrouble } from '../store/db.ts';
import type { MirrorStats } from '../store/stats-types.ts';
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
