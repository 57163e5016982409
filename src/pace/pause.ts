import type { Pause } from '../store/sellers/pause.ts';
import type { PaceDecision } from './policy.ts';

/*
 * A pause that somebody asked for keeps all requests back, whatever the pace would allow. Pure; times are the
 * database's.
 */

/** What waits for the end of a pause asks again after this: somebody may have resumed. */
const ASK_AGAIN_MS = 5000;

/** Whether this pause holds at `now`: nobody has ended it, and its end is to come. */
export function holds(pause: Pause | null, now: number): pause is Pause {
  return pause !== null && pause.resumedBy === null && (pause.until === null || now < pause.until);
}

/** When to ask again where a pause holds; null where none does. */
export function whilePaused(pause: Pause | null, now: number): Extract<PaceDecision, { go: false }> | null {
  if (!holds(pause, now)) return null;
  return { go: false, at: Math.min(pause.until ?? Infinity, now + ASK_AGAIN_MS), because: 'paused' };
}

/** A pause as people and programs are shown it. */
export interface PauseStatus {
  readonly since: Date;
  /** Null: until somebody resumes. */
  readonly until: Date | null;
  readonly by: string;
}

/** The pause that holds at `now`; null where none does. */
export function pauseStatus(pause: Pause | null, now: number): PauseStatus | null {
  if (!holds(pause, now)) return null;
  return {
    since: new Date(pause.since),
    until: pause.until === null ? null : new Date(pause.until),
    by: pause.by,
  };
}

/** What has become of the pause since a process last read it (`before`: the pause that held then); null: nothing. */
export function pauseNews(
  before: Pause | null,
  pause: Pause | null,
  now: number,
): { readonly what: 'paused' | 'resumed'; readonly pause: Pause } | null {
  if (holds(pause, now)) return before?.setAt === pause.setAt ? null : { what: 'paused', pause };
  return before === null ? null : { what: 'resumed', pause: pause ?? before };
}
