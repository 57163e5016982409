import { formatAge } from '../lib/duration.ts';
import type { PauseStatus } from '../pace/pause.ts';
import { secondsBetween } from './format.ts';
import { paused, type Reason, type ReasonCode } from './reason.ts';

/*
 * What a pause that somebody asked for means for the health of the mirror. Pure, and part of `judgeHealth` (health.ts).
 */

/** From here on a pause without an end may have been forgotten. */
const FORGOTTEN_SECONDS = 86_400;

/** What comes of sending no requests, and is over some time after the pause: nobody needs to act on it meanwhile. */
const CONSEQUENCES: ReadonlySet<ReasonCode> = new Set([
  'stalled',
  'delta-late',
  'delta-behind',
  'catalog-differs',
  'chain-broken',
  'catalog-stale',
  'delta-failing',
  'manifest-failing',
  'calls-failing',
  'skus-failing',
  'live-deferred',
  'backlog-late',
]);

/** What only requests show to be over, or a daemon that nobody needs meanwhile: it is shown, and is not urgent. */
const LATER: ReadonlySet<ReasonCode> = new Set(['refused', 'no-baseline', 'stopped']);

/** Until when a pause lasts, in words. */
export const untilText = ({ until }: Pick<PauseStatus, 'until'>): string =>
  until === null ? 'until `catalog-mirror resume`' : `until ${until.toISOString()}`;

/** The pause as a reason for the state. */
function pauseReason(pause: PauseStatus, now: Date): Reason {
  const age = secondsBetween(pause.since, now);
  const what =
    `all requests to the partner are paused ${untilText(pause)}, by ${pause.by} since ` +
    `${pause.since.toISOString()}, so prices get older`;
  return pause.until === null && age > FORGOTTEN_SECONDS
    ? paused(
        'paused',
        `${what}; that was ${formatAge(age)} ago, and it has no end`,
        'if it was forgotten, run `catalog-mirror resume`; else give it an end with `catalog-mirror pause --for`',
      )
    : paused('paused', what, 'end it with `catalog-mirror resume`');
}

/**
 * The reasons as they are while requests are paused: with the pause, and without what comes of it. As they come where
 * there is none.
 */
export function reasonsWhilePaused(
  reasons: readonly Reason[],
  pause: PauseStatus | null,
  now: Date,
): readonly Reason[] {
  if (pause === null) return reasons;
  const others = reasons
    .filter(({ code }) => !CONSEQUENCES.has(code))
    .map((reason) =>
      reason.level === 'broken' && LATER.has(reason.code)
        ? { ...reason, level: 'degraded' as const }
        : reason,
    );
  return [pauseReason(pause, now), ...others];
}
