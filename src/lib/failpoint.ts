/*
 * Named points between an answer's arrival and its commit. They do nothing unless a test has armed them, to see what a
 * process that ends right there leaves behind.
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

/** Makes `act` run whenever a point is passed, replacing what was armed before. */
export function armFailpoints(act: (point: Failpoint) => void): void {
  armed = act;
}

/** Runs what a test has armed for this point; otherwise does nothing. */
export function failpoint(point: Failpoint): void {
  armed?.(point);
}
