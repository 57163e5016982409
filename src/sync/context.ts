import type { Clock } from '../lib/clock.ts';
import type { Tracer } from '../lib/tracer.ts';
import type { Pacer } from '../pace/permit.ts';
import type { PartnerClient } from '../partner/client.ts';
import type { AnswerObservers } from '../store/answer/observers.ts';
import type { Sql } from '../store/connection/db.ts';
import type { DueFloors } from '../store/ledger/due-floors.ts';
import type { SyncEvent } from './events.ts';
import type { RecentAnswers } from './reprice/recent.ts';
import type { SyncSettings } from './settings.ts';

/** What every part of sync works with. Nothing here comes from the environment. */
export interface SyncContext {
  readonly sql: Sql;
  /** For the separate connection that a manifest needs. */
  readonly databaseUrl: () => string;
  readonly client: PartnerClient;
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly random: () => number;
  readonly settings: SyncSettings;
  readonly emit: (event: SyncEvent) => void;
  readonly observers: AnswerObservers;
  readonly floors: DueFloors;
  readonly recent: RecentAnswers;
  readonly tracer: Tracer;
}

/** The two stages in which a daemon stops. */
export interface StopSignals {
  /** Ends waits and long downloads; no further call is planned. */
  readonly stopping: AbortSignal;
  /** Fires seconds later: also aborts single requests; the SKUs of a call stay due. */
  readonly hard: AbortSignal;
}
