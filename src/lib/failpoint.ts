/*
 * Named points between an answer's arrival and its commit. Nothing happens at them, unless a test has armed one to see
 * what a process leaves behind that ends right there.
 */

/** The points that a test can arm. */
export const FAILPOINTS = [
  'pace.logged',
  'pace.silenced',
  'manifest.answered',
  'manifest.staging',
  'manifest.staged',
  'manifest.marked',
  'manifest.token-moved',
  'manifest.committed',
  'delta.answered',
  'delta.reported',
  'delta.token-moved',
  'delta.committed',
  'bulk.claimed',
  'bulk.answered',
  'bulk.compared',
  'bulk.written',
  'bulk.committed',
  'bulk.learned',
  'task.worked',
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

let armed: ((point: Failpoint) => void) | null = null;

/** Has `act` run whenever a point is passed, in place of what was armed before. */
export function armFailpoints(act: (point: Failpoint) => void): void {
  armed = act;
}

/** Runs what is armed for this point, in a test; else does nothing. */
export function failpoint(point: Failpoint): void {
  armed?.(point);
}
