import { formatAge } from '../lib/duration.ts';
import { plural } from '../lib/format.ts';
import type { Migrating } from '../store/setup/migrating.ts';
import type { MigrationStep } from '../store/setup/migrations.ts';
import { holderRemedy, holderText, type LockHolder } from '../store/status/holders.ts';

/** A migration that takes longer is named; what is shorter is over before anybody has read of it. */
const TELL_AFTER_MS = 2000;
const TELL_AGAIN_MS = 30_000;

/** What `migrate` says while it works: a line an event, none of what is over at once. */
export interface MigrationProgress {
  readonly pending: (count: number) => void;
  readonly step: (step: MigrationStep) => void;
  /** Migrations are over, whatever else is still to be done. */
  readonly over: () => void;
  /** Called again and again meanwhile, with what others see of it. */
  readonly tick: (holders: readonly LockHolder[], migrating: Migrating) => void;
}

/** `now`: milliseconds of a clock that only runs on. */
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
