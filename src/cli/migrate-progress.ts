import { formatAge } from '../lib/duration.ts';
import { plural } from '../lib/format.ts';
import type { Migrating } from '../store/setup/migrating.ts';
import type { MigrationStep } from '../store/setup/migrations.ts';
import { holderRemedy, holderText, type LockHolder } from '../store/status/holders.ts';

/** A migration that takes longer is named; a shorter one is over before anybody could read about it. */
const TELL_AFTER_MS = 2000;
const TELL_AGAIN_MS = 30_000;

/** What `migrate` prints while it works: one line per event, none about what is over at once. */
export interface MigrationProgress {
  readonly pending: (count: number) => void;
  readonly step: (step: MigrationStep) => void;
  /** Migrations are over, whatever else is left to do. */
  readonly over: () => void;
  /** Called repeatedly meanwhile, with what other sessions see of it. */
  readonly tick: (holders: readonly LockHolder[], migrating: Migrating) => void;
}

/** Creates the progress lines. `now` returns milliseconds of a monotonic clock. */
export function migrationProgress(print: (line: string) => void, now: () => number): MigrationProgress {
  let step: MigrationStep | null = null;
  let [begunAt, tellAt] = [0, Infinity];
  const named = new Set<number>();
  const once = (pid: number, line: string) => {
    if (!named.has(pid)) print(line);
    named.add(pid);
  };
  return {
    pending(count) {
      print(
        `${count} ${plural(count, 'migration is', 'migrations are')} pending; on a large catalog this takes up to half an hour, ` +
          'and whoever ends it begins it anew',
      );
    },
    step(next) {
      step = next;
      begunAt = now();
      tellAt = begunAt + TELL_AFTER_MS;
    },
    over() {
      step = null;
      tellAt = Infinity;
    },
    tick(holders, { other, indexPercent }) {
      for (const holder of holders)
        once(holder.pid, `waiting: ${holderText(holder)}; ${holderRemedy(holder)}`);
      if (step === null && other !== null)
        once(other.pid, `waiting: process ${other.pid} of Postgres (${other.application}) applies them`);
      if (step === null || now() < tellAt) return;
      tellAt = now() + TELL_AGAIN_MS;
      const built = indexPercent === null ? '' : `; the index at hand is built to ${indexPercent} %`;
      print(
        `${step.tag} (${step.number} of ${step.of}): ${formatAge((now() - begunAt) / 1000)} so far${built}`,
      );
    },
  };
}
