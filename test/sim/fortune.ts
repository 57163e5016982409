import { AsyncLocalStorage } from 'node:async_hooks';
import { armFailpoints, type Failpoint } from '../../src/lib/failpoint.ts';
import { type Draw, pick } from './faults.ts';
import type { Rig } from './rig.ts';
import { Crash, type Fortune } from './worker.ts';

/** Nothing happens to it. */
export const CALM: Fortune = {
  pauses: () => false,
  lifetime: Infinity,
  commit: () => 'done',
  statement: () => 'answered',
  silence: () => Promise.resolve(),
};

/** So long a statement waits for its answer, as the daemon's do (answer-limit.ts). */
const ANSWER_WITHIN_MS = 30_000;

/**
 * What a daemon meets: pauses before statements, conflicts, lost answers of COMMIT, silent connections, and in one of
 * three its end.
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

/** Rigs play side by side: where the process of one is to end, that of another passes. */
const crashOf = new Map<Rig, Failpoint>();
const playing = new AsyncLocalStorage<Rig>();

armFailpoints((point) => {
  const rig = playing.getStore();
  if (rig === undefined || crashOf.get(rig) !== point) return;
  rig.note('crash in a manifest');
  crashOf.delete(rig);
  throw new Crash();
});

/** Plays a history on a rig: what it arms ends no other rig's processes. */
export async function playOn(rig: Rig, play: () => Promise<void>): Promise<void> {
  await playing.run(rig, play);
}

/** A manifest has a connection of its own, which no worker sees: its process ends at a point of the code. */
export function crashInManifest(draw: Draw, rig: Rig): void {
  crashOf.set(rig, pick(MANIFEST_POINTS, draw));
}

/** Whether one is still to end so. */
export function mayCrashInManifest(rig: Rig): boolean {
  return crashOf.has(rig);
}

/** Takes that back. */
export function crashNowhere(rig: Rig): void {
  crashOf.delete(rig);
}
