/*
 * Due times are promises made at another price. After a start, an outage, or where a ceiling on live computations is
 * met, more is due than can be refreshed, and by due time it would be refreshed almost in turn. So while there is
 * such a backlog the most valuable SKUs of it are listed, again each minute, and refreshed before all others. Pure;
 * all times in minutes.
 */

/** What is due makes a backlog once it takes this many minutes to refresh. */
const BACKLOG_MINUTES = 3;
/** How many minutes' worth of it is listed: until the next list and as long again, should that be late. */
const LISTED_MINUTES = 2;
/** After a longer time without a live refresh the mirror was idle. */
const IDLE_MINUTES = 2;
/** Minutes by which the idle time shrinks in a minute without a backlog. */
const OVER_A_MINUTE = 0.25;

/** How much is due that refreshes are wanted for, and how many of them there are a minute. */
export interface Backlog {
  readonly due: number;
  readonly refreshesPerMinute: number;
}

export function isBacklog({ due, refreshesPerMinute }: Backlog): boolean {
  return due >= BACKLOG_MINUTES * refreshesPerMinute;
}

/** Whether the next minute may bring one: more is due than is refreshed in one. */
export function isBacklogNear({ due, refreshesPerMinute }: Backlog): boolean {
  return due >= refreshesPerMinute;
}

/** How many SKUs to list. */
export function listedSkus({ refreshesPerMinute }: Backlog): number {
  return Math.ceil(LISTED_MINUTES * refreshesPerMinute);
}

/** Times between one live refresh and the next, in the time `elapsed`. */
export interface Quiet {
  readonly gaps: readonly number[];
  readonly elapsed: number;
}

/**
 * For how long nothing was refreshed, as far as its effects last: `idle` so far, grown by those `gaps` between two
 * refreshes that are such, and waning in the `elapsed` time since this was last asked unless there is a backlog.
 */
export function idleAfter(
  idle: number,
  { gaps, elapsed, backlog }: Quiet & { readonly backlog: boolean },
): number {
  const grown = gaps.reduce((sum, gap) => sum + (gap > IDLE_MINUTES ? gap : 0), idle);
  return backlog ? grown : Math.max(0, grown - OVER_A_MINUTE * elapsed);
}

/**
 * After how long without a refresh a SKU comes first, whatever it is worth: the longest allowed wait `most`, and
 * twice the idle time, for behind that everybody has waited for long.
 */
export function overdueMinutes(most: number, idle: number): number {
  return most + 2 * idle;
}
