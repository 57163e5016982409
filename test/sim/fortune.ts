import { AsyncLocalStorage } from 'node:async_hooks';
import { armFailpoints, type Failpoint } from '../../src/lib/failpoint.ts';
import { type Draw, pick } from './faults.ts';
import type { Rig } from './rig.ts';
import { Crash, type Fortune } from './worker.ts';

/** A fortune in which nothing happens. */
export const CALM: Fortune = {
  pauses: () => false,
  lifetime: Infinity,
  commit: () => 'done',
  statement: () => 'answered',
  silence: () => Promise.resolve(),
};

/** How long a statement waits for its answer, as in the daemon (answer-limit.ts). */
const ANSWER_WITHIN_MS = 30_000;

/**
 * Draws what a daemon meets: pauses before statements, conflicts, lost answers of COMMIT, silent connections, and
 * for one in three its end.
 */
export function fortuneOf(draw: Draw, rig: Rig): Fortune {
  return {
    pauses: () => draw(12) === 0,
    lifetime: draw(3) === 0 ? 1 + draw(80) : Infinity,
    commit: () => {
      const luck = draw(60);
      if (luck === 1) rig.note('unanswered commit');
      return luck === 0 ? 'conflict' : luck === 1 ? 'unanswered' : 'done';
    },
    statement: () => {
      const luck = draw(150);
      if (luck > 1) return 'answered';
      rig.note('silent connection');
      return luck === 0 ? 'silent before' : 'silent after';
    },
    silence: () => rig.time.pass(ANSWER_WITHIN_MS),
  };
}

const MANIFEST_POINTS: readonly Failpoint[] = [
  'manifest.answered',
  'manifest.staging',
  'manifest.staged',
  'manifest.marked',
  'manifest.token-moved',
  'manifest.committed',
];

/** Rigs play side by side: a crash point of one must not end the process of another. */
const crashOf = new Map<Rig, Failpoint>();
const playing = new AsyncLocalStorage<Rig>();

armFailpoints((point) => {
  const rig = playing.getStore();
  if (rig === undefined || crashOf.get(rig) !== point) return;
  rig.note('crash in a manifest');
  crashOf.delete(rig);
  throw new Crash();
});

/** Plays a history on a rig. Its crash points end no other rig's processes. */
export async function playOn(rig: Rig, play: () => Promise<void>): Promise<void> {
  await playing.run(rig, play);
}

/** Lets the process end at a point of the code: a manifest has a connection of its own, which no worker sees. */
export function crashInManifest(draw: Draw, rig: Rig): void {
  crashOf.set(rig, pick(MANIFEST_POINTS, draw));
}

/** Decides whether such a crash is still to come. */
export function mayCrashInManifest(rig: Rig): boolean {
  return crashOf.has(rig);
}

/** Cancels such a crash. */
export function crashNowhere(rig: Rig): void {
  crashOf.delete(rig);
}
