import type { Config } from '../config/config.ts';
import type { AnyLine, EventName } from '../declared/log-events.ts';
import type { Clock } from '../lib/clock.ts';
import type { Tracer } from '../lib/tracer.ts';
import type { Pacer, SentPermit } from '../pace/pacer.ts';
import type { PartnerClient } from '../partner/client.ts';
import { OUTAGE_KINDS, PartnerError, type RequestOutcome } from '../partner/errors.ts';
import type { MoveCounts } from '../store/answer/mass-moves.ts';
import type { MemberWatch } from '../store/answer/members.ts';
import type { NextRefresh } from '../store/answer/types.ts';
import type { Sql } from '../store/connection/db.ts';
import type { DueFloors } from '../store/ledger/due-floors.ts';
import { endCallPause } from '../store/ledger/tasks.ts';
import type { HintCounts } from '../store/sellers/hints.ts';
import type { PromiseCounts } from '../store/sellers/promises.ts';
import type { LookCounts } from '../store/trust/calibration.ts';
import type { Failure } from './outcome.ts';
import type { RecentAnswers } from './reprice/recent.ts';
import { acquireTraced, callTraced } from './traces.ts';

/** What sync uses of the configuration. Credentials are the client's. */
export interface SyncSettings extends Pick<Config, 'bulk' | 'intervals' | 'catalog'> {
  readonly partner: Pick<Config['partner'], 'baseUrl' | 'filesOrigins' | 'downloadTimeoutMs' | 'proxy'>;
  /** Requests a minute at the mirror's full pace. */
  readonly callsPerMinute: number;
}

/** Something inside a run that metrics count, or that has no line for each time. */
type CountedEvent =
  | {
      readonly event: 'manifest.downloaded';
      readonly outcome: RequestOutcome;
      readonly status: number | undefined;
      readonly ms: number;
    }
  | {
      readonly event: 'manifest.rejected-lines';
      readonly rejected: number;
      readonly reasons: Readonly<Record<string, number>>;
    }
  | {
      readonly event: 'delta.applied';
      readonly toSnapshot: string;
      readonly changed: number;
      readonly removed: number;
      readonly nowLive: number;
      readonly newSkus: number;
      readonly crossedToLive: number;
      readonly crossedToSnapshot: number;
      readonly skipped: number;
    }
  | ({ readonly event: 'delta.chain-broken' } & Failure)
  | {
      readonly event: 'bulk.applied';
      readonly asked: number;
      readonly resolved: number;
      readonly notFound: number;
      readonly deferred: number;
      readonly errors: number;
      readonly omitted: number;
      readonly contradictory: number;
      readonly unreadable: number;
      readonly unexpected: number;
      readonly late: number;
      readonly priceChanges: number;
      readonly metadataChanges: number;
      readonly unpricedEntries: number;
      /** For each report of the delta that the answer answers: seconds from the report to its commit. */
      readonly reportSeconds: readonly number[];
      /** Promises of a price's age, by what became of them with the answer. */
      readonly promises: PromiseCounts;
    }
  /** `sku`: the only one that the call had, where a call with it alone has failed before. */
  | ({
      readonly event: 'bulk.failed';
      readonly skus: number;
      readonly sku?: string;
      readonly pausedMs: number;
    } & Failure)
  | { readonly event: 'size-type.changed'; readonly skus: readonly string[] };

/**
 * What happens inside a run: what is counted or summed up, and any other event of the log. The end of a run is its
 * TaskOutcome.
 */
export type SyncEvent = CountedEvent | AnyLine<Exclude<EventName, CountedEvent['event']>>;

/** What every part of sync works with. Nothing here is read from the environment. */
export interface SyncContext {
  readonly sql: Sql;
  /** For the connection of its own that a manifest needs. */
  readonly databaseUrl: () => string;
  readonly client: PartnerClient;
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly random: () => number;
  readonly settings: SyncSettings;
  readonly emit: (event: SyncEvent) => void;
  readonly members: MemberWatch;
  readonly looks: LookCounts;
  readonly hints: HintCounts;
  readonly moves: MoveCounts;
  readonly floors: DueFloors;
  readonly recent: RecentAnswers;
  readonly tracer: Tracer;
}

/** The two steps in which a daemon stops. */
export interface StopSignals {
  /** Ends waits and long downloads; no further call is planned. */
  readonly stopping: AbortSignal;
  /** Seconds later: aborts single requests too; the SKUs of a call stay due. */
  readonly hard: AbortSignal;
}

export type Asked<T> =
  | { readonly kind: 'answer'; readonly value: T }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: string }
  | FailedRequest;

export interface FailedRequest {
  readonly kind: 'error';
  readonly error: PartnerError;
  /** Its refusal has begun a back-off: others were let through before it. */
  readonly beganBackoff: boolean;
}

/**
 * Sends one request when it gets a permit: the answer, or how long to wait instead, or what went wrong, as a value.
 * An answer, and an error with a code of the partner's own too, is evidence that an outage is over: bulk calls need
 * not pause any longer. Where this route had failed in `failuresBefore` runs, that is so whatever bulk calls met: a
 * gateway that is down may answer anything, a 400 too.
 */
export async function ask<T>(
  ctx: SyncContext,
  lane: string,
  send: (permit: SentPermit) => Promise<T>,
  failuresBefore: number,
  signal?: AbortSignal,
): Promise<Asked<T>> {
  const acquired = await acquireTraced(ctx, lane, signal);
  if (acquired.kind === 'wait') return acquired;
  const asked = await callTraced(ctx, lane, {}, () => send(acquired.permit)).then(
    (value): Asked<T> => ({ kind: 'answer', value }),
    (error: unknown): Asked<T> => {
      if (error instanceof PartnerError)
        return { kind: 'error', error, beganBackoff: acquired.permit.beganBackoff() };
      throw error;
    },
  );
  if (asked.kind === 'answer' || (asked.kind === 'error' && asked.error.code !== undefined))
    await endCallPause(ctx.sql, asked.kind === 'answer' && failuresBefore > 0 ? null : OUTAGE_KINDS);
  return asked;
}

/**
 * How long a snapshot-priced SKU may go without a refresh, in milliseconds: its sweep, or its metadata where that is
 * sooner.
 */
export function snapshotMs({ intervals: { sweepMs, metadataMs } }: Pick<Config, 'intervals'>): number {
  return sweepMs > 0 ? Math.min(sweepMs, metadataMs) : metadataMs;
}

/**
 * A listed SKU that was priced until the price routes answered 0009 is asked again after this, and then after twice
 * as long each time: they may be wrong for a while.
 */
const LOST_MS = 3_600_000;

export function nextRefresh({ intervals }: Pick<Config, 'intervals'>): NextRefresh {
  const { liveMs, sweepMs, metadataMs } = intervals;
  return {
    liveMs,
    snapshotMs: snapshotMs({ intervals }),
    snapshotReason: sweepMs > 0 && sweepMs <= metadataMs ? 'sweep' : 'metadata',
    notFoundMs: metadataMs,
    lostMs: Math.min(LOST_MS, metadataMs),
  };
}
