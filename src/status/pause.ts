import { formatAge } from '../lib/duration.ts';
import type { PauseStatus } from '../pace/pause.ts';
import { secondsBetween } from './format.ts';
import { paused, type Reason, type ReasonCode } from './reason.ts';

/* What a requested pause means for the health of the mirror. Pure, and part of `judgeHealth` (health.ts). */

/** After this, a pause without an end may have been forgotten. */
const FORGOTTEN_SECONDS = 86_400;

/**
 * Reasons that result from sending no requests and end some time after the pause: nobody needs to act on them
 * meanwhile.
 */
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

/**
 * Reasons that only requests can show to be over, or about a daemon that nobody needs meanwhile: shown, but not
 * urgent.
 */
const LATER: ReadonlySet<ReasonCode> = new Set(['refused', 'no-baseline', 'stopped']);

/** Describes until when a pause lasts. */
export const untilText = ({ until }: Pick<PauseStatus, 'until'>): string =>
  until === null ? 'until `catalog-mirror resume`' : `until ${until.toISOString()}`;

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
 * Returns the reasons while requests are paused: with the pause, and without its consequences. Without a pause,
 * they are unchanged.
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
