import type { Config } from '../config/config.ts';
import type { Clock } from '../lib/clock.ts';
import type { Tracer } from '../lib/tracer.ts';
import { createPacer } from '../pace/pacer.ts';
import { type PaceLimits, sendsPerMinute } from '../pace/policy.ts';
import { createPartnerClient, type PartnerClient } from '../partner/client.ts';
import { AUTH_CLASS } from '../partner/errors.ts';
import { createObservers } from '../store/answer/observers.ts';
import type { Sql } from '../store/connection/db.ts';
import { DueFloors } from '../store/ledger/due-floors.ts';
import type { SyncContext } from '../sync/context.ts';
import { RecentAnswers } from '../sync/reprice/recent.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { VERSION } from '../version.ts';
import type { ClockWatch } from './clock-watch.ts';
import { followAccount, type OnStop } from './database.ts';
import type { NamesKept } from './learned-names.ts';
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

/**
 * Picks a rotated credential up from its files (partner rule 5.4). Read after an answer of the
 * auth class, and again before the next request: a file may be written between the two, or have been read half written.
 */
function credentialReader(
  { partner }: Config,
  log: Log,
  onChange: (isOtherKey: boolean) => void,
): () => void {
  return () => {
    const isOtherKey = partner.apiKey.refresh();
    const isOtherSecret = partner.secret.refresh();
    if (!isOtherKey && !isOtherSecret) return;
    log.info({ event: 'credential.changed' });
    onChange(isOtherKey);
  };
}

/**
 * The client of the partner that the configuration names, which reads by what is known of undocumented names; answers
 * of the auth class have the credential read again.
 */
function openClient(
  config: Config,
  clock: Clock,
  { formKeeper, knownFields }: Pick<NamesKept, 'formKeeper' | 'knownFields'>,
  onSync: Telemetry['onSync'],
  observe: Telemetry['onRequest'],
  rereadCredential: () => void,
): PartnerClient {
  const { partner } = config;
  return createPartnerClient({
    baseUrl: new URL(partner.baseUrl),
    credentials: () => ({ apiKey: partner.apiKey.read(), secret: partner.secret.read() }),
    timeoutMs: partner.timeoutMs,
    bodyKey: partner.fields.bulkBodyKey,
    priceFields: partner.fields.price,
    skuField: partner.fields.sku,
    manifestUrlField: partner.fields.manifestUrl ?? undefined,
    snapshotIdField: partner.fields.snapshotId ?? undefined,
    allowInsecure: partner.allowInsecure,
    proxy: partner.proxy,
    userAgent: `catalog-mirror/${VERSION}`,
    clock,
    formKeeper,
    knownFields,
    onForm: ({ kind, field, instead }) =>
      onSync({ event: kind === 'missing' ? 'price-form.missing' : 'price-form.let-go', field, instead }),
    observe(observation) {
      observe(observation);
      const { outcome } = observation;
      if (outcome !== 'ok' && AUTH_CLASS.has(outcome)) rereadCredential();
    },
  });
}

/** Requests are observed, and the time that the partner's answers name is compared with other clocks. */
function observerOf(telemetry: Telemetry, clocks: ClockWatch): Telemetry['onRequest'] {
  return (observation) => {
    telemetry.onRequest(observation);
    if (observation.date !== null) clocks.partnerAnswered(observation.date);
  };
}
