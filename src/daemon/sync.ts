import type { Tracer } from '../lib/tracer.ts';
import { createPacer } from '../pace/pacer.ts';
import { type PaceLimits, sendsPerMinute } from '../pace/policy.ts';
import { createObservers } from '../store/answer/observers.ts';
import type { Sql } from '../store/connection/db.ts';
import { DueFloors } from '../store/ledger/due-floors.ts';
import type { SyncContext } from '../sync/context.ts';
import { RecentAnswers } from '../sync/reprice/recent.ts';
import { followAccount, type OnStop } from './database.ts';
import { credentialReader, observerOf, openClient } from './partner.ts';
import type { Parts } from './parts.ts';

/** What was opened before it; `onStop` takes what closes it. */
interface Opened {
  readonly sql: Sql;
  /** Where Postgres is at present. */
  readonly databaseUrl: () => string;
  readonly limits: PaceLimits;
  readonly tracer: Tracer;
  readonly onStop: OnStop;
}

/** What sync works with in this process: the client and the pace of its requests, and what it counts. */
export function createSync(
  { config, clock, clocks, log, names, telemetry, breaker }: Omit<Parts, 'sync'>,
  { sql, databaseUrl, limits, tracer, onStop }: Opened,
): SyncContext {
  const rereadCredential = credentialReader(config, log, (isOtherKey) => {
    breaker.cleared();
    // Where this fails, the next start tells.
    if (isOtherKey) void followAccount(config, sql, log).catch(() => {});
  });
  const observe = observerOf(telemetry, clocks);
  const client = openClient(config, clock, names, telemetry.onSync, observe, rereadCredential);
  onStop(() => client.close());
  return {
    sql,
    databaseUrl,
    client,
    pacer: createPacer(sql, clock, limits, { ...telemetry.pace, afterRefusal: rereadCredential }, breaker),
    clock,
    random: Math.random,
    settings: { ...config, callsPerMinute: sendsPerMinute(limits) },
    emit: telemetry.onSync,
    observers: createObservers(clock),
    floors: new DueFloors(clock),
    recent: new RecentAnswers(),
    tracer,
  };
}
