import type { Pause } from '../store/sellers/pause.ts';
import type { PaceDecision } from './policy.ts';

/* A requested pause holds back all requests, whatever the pace would allow. Pure; times are the database's. */

/** A request that waits for the end of a pause asks again after this long, because somebody may have resumed. */
const ASK_AGAIN_MS = 5000;

/** Returns whether this pause holds at `now`: nobody has ended it, and its end is in the future. */
export function holds(pause: Pause | null, now: number): pause is Pause {
  return pause !== null && pause.resumedBy === null && (pause.until === null || now < pause.until);
}

/** Returns when to ask again while a pause holds; null if none does. */
export function whilePaused(pause: Pause | null, now: number): Extract<PaceDecision, { go: false }> | null {
  if (!holds(pause, now)) return null;
  return { go: false, at: Math.min(pause.until ?? Infinity, now + ASK_AGAIN_MS), because: 'paused' };
}

/** A pause as people and programs see it. */
export interface PauseStatus {
  readonly since: Date;
  /** Null: until somebody resumes. */
  readonly until: Date | null;
  readonly by: string;
}

/** Returns the pause that holds at `now`; null if none does. */
export function pauseStatus(pause: Pause | null, now: number): PauseStatus | null {
  if (!holds(pause, now)) return null;
  return {
    since: new Date(pause.since),
    until: pause.until === null ? null : new Date(pause.until),
    by: pause.by,
  };
}

/** Returns what has become of the pause since `before`, the one that held at the last read; null if nothing. */
export function pauseNews(
  before: Pause | null,
  pause: Pause | null,
  now: number,
): { readonly what: 'paused' | 'resumed'; readonly pause: Pause } | null {
  if (holds(pause, now)) return before?.setAt === pause.setAt ? null : { what: 'paused', pause };
  return before === null ? null : { what: 'resumed', pause: pause ?? before };
}
