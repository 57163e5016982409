import { withMirror } from '../mirror.ts';
import type { Config } from '../../config.ts';
import { systemClock } from '../../lib/clock.ts';
import { type BulkAnswer, createPartnerClient, type PartnerClient } from '../../partner/client.ts';
import { AUTH_CLASS, PartnerError } from '../../partner/errors.ts';
import type { Permit } from '../../partner/permit.ts';
import { readManifestFile } from '../../partner/manifest-file.ts';
import { paceLimits } from '../../limits.ts';
import { openRedis } from '../../queues/backend.ts';
import { sqlState, type Sql } from '../../store/db.ts';
import { migrationState } from '../../store/migrations.ts';
import { createPacer } from '../../sync/pacing.ts';
import { VERSION } from '../../version.ts';
import { fail, type Finding, ok, warn } from './finding.ts';

const POSTGRES_LEAST = 140_000;
const SKEW_TOLERATED_MS = 60_000;
const SAMPLE_SKUS = 20;
const PATIENCE_MS = 20_000;

/** Signs of a credential damaged on its way (specification 5.1: a trailing newline is enough for a 403). */
export function checkCredential(config: Config): Finding[] {
  const { apiKey, secret } = config.partner;
  return Object.entries({ PARTNER_API_KEY: apiKey.read(), PARTNER_SECRET: secret.read() }).map(
    ([name, value]) => {
      if (/[\r\n]$/.test(value))
        return fail(name, 'ends in a newline', 'write it without one: printf %s "…" > file');
      if (value !== value.trim())
        return warn(name, 'begins or ends in white space', 'check that it was copied whole');
      return ok(name, 'is set');
    },
  );
}

export function checkRate(config: Config): Finding {
  const { limit, windowMs, share } = config.rate;
  const text = `the mirror may send ${paceLimits(config).maxPerWindow} of ${limit} requests in ${windowMs / 1000} s`;
  return share > 0.95
    ? warn('request share', text, 'leave some to your other services, or a burst of theirs refuses everyone')
    : ok('request share', text);
}

/** Version, rights and migrations of the mirror's Postgres. */
export async function checkMirrorDatabase(config: Config): Promise<Finding[]> {
  try {
    return await withMirror(config, async (sql) => [await postgresVersion(sql), ...(await migrations(sql))]);
  } catch (error) {
    const text = error instanceof Error ? error.message : 'no connection';
    return [
      fail(
        'postgres',
        `${text} (${sqlState(error) ?? 'no code'})`,
        'check DATABASE_URL, and that the server runs',
      ),
    ];
  }
}

async function postgresVersion(sql: Sql): Promise<Finding> {
  const [row] = await sql<[{ number: number; version: string }]>`
    select current_setting('server_version_num')::int as number, current_setting('server_version') as version`;
  return row.number >= POSTGRES_LEAST
    ? ok('postgres', `version ${row.version}`)
    : fail('postgres', `version ${row.version}`, 'PostgreSQL 14 or newer is needed');
}

async function migrations(sql: Sql): Promise<Finding[]> {
  const [rights] = await sql<[{ create: boolean; migrated: boolean; reader: boolean }]>`
    select has_database_privilege(current_database(), 'CREATE') as create,
      to_regclass('catalog.skus') is not null as migrated, to_regrole('catalog_reader') is not null as reader`;
  const { pending, unknown } = await migrationState(sql);
  const findings = [
    unknown > 0
      ? fail(
          'migrations',
          `${unknown} of a later version`,
          'run that version again, or restore a backup from before the upgrade',
        )
      : pending === 0
        ? ok('migrations', 'applied')
        : warn(
            'migrations',
            rights.migrated ? `${pending} pending` : 'not applied yet',
            '`run` and `migrate` apply them',
          ),
    rights.reader
      ? ok('roles', 'catalog_reader exists')
      : warn(
          'roles',
          'catalog_reader does not exist',
          'the daemon makes it where it may create roles; else create it and grant by hand',
        ),
  ];
  if (!rights.create && !rights.migrated) {
    findings.push(
      fail('rights', 'no CREATE on the database', 'GRANT CREATE ON DATABASE … TO the daemon’s role'),
    );
  }
  return findings;
}

/** Version, persistence and eviction of Redis, where the queues are there. */
export async function checkRedis(config: Config): Promise<Finding[]> {
  const url = config.queues.redisUrl?.read();
  if (url === undefined) return [ok('queues', 'in Postgres')];
  const redis = openRedis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  // What it says is more than the refused command does.
  let trouble: Error | null = null;
  redis.on('error', (error) => (trouble = error));
  try {
    await redis.connect();
    const info = await redis.info();
    const value = (key: string) => new RegExp(`^${key}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
    const policy = value('maxmemory_policy');
    const persistent = value('aof_enabled') === '1';
    return [
      ok('redis', `version ${value('redis_version')}`),
      policy === 'noeviction'
        ? ok('redis policy', 'noeviction')
        : fail('redis policy', policy, 'set maxmemory-policy noeviction: evicted keys are lost jobs'),
      persistent
        ? ok('redis aof', 'on')
        : warn(
            'redis aof',
            'off',
            'nothing is lost without it: schedules are put back at a restart; appendonly yes saves the pause',
          ),
    ];
  } catch (error) {
    return [
      fail('redis', ((trouble ?? error) as Error).message, 'check REDIS_URL, and that the server runs'),
    ];
  } finally {
    redis.disconnect();
  }
}

/** Credential, clock and undocumented names, with three paced requests: manifest, some bytes of its file, one bulk call. */
export async function checkPartner(config: Config): Promise<Finding[]> {
  let upstreamDate: Date | null = null;
  const client = createPartnerClient({
    baseUrl: new URL(config.partner.baseUrl),
    credentials: () => ({ apiKey: config.partner.apiKey.read(), secret: config.partner.secret.read() }),
    timeoutMs: config.partner.timeoutMs,
    bodyKey: config.partner.fields.bulkBodyKey,
    priceFields: config.partner.fields.price,
    skuField: config.partner.fields.sku,
    manifestUrlField: config.partner.fields.manifestUrl ?? undefined,
    snapshotIdField: config.partner.fields.snapshotId ?? undefined,
    allowInsecure: config.partner.allowInsecure,
    userAgent: `catalog-mirror/${VERSION} doctor`,
    clock: systemClock,
    observe: ({ date }) => (upstreamDate = date ?? upstreamDate),
  });
  const findings: Finding[] = [];
  try {
    await withMirror(config, async (sql) => {
      const pacer = createPacer(sql, systemClock, paceLimits(config));
      const [ledger] = await sql`select from pg_class where oid = to_regclass('catalog_internal.pace')`;
      const permit = async (): Promise<Permit> => {
        // Before the first run there is no ledger, and no daemon that sends.
        if (ledger === undefined) return { settle: () => Promise.resolve() };
        const turn = await pacer.acquire('doctor', PATIENCE_MS);
        if (turn.kind === 'granted') return turn.permit;
        throw new Error(`no request may be sent for ${Math.ceil(turn.forMs / 1000)} s: ${turn.because}`);
      };
      for await (const finding of askPartner(config, client, permit)) findings.push(finding);
    });
    if (upstreamDate !== null) findings.push(clockSkew(upstreamDate));
  } catch (error) {
    findings.push(partnerFailure(error));
  } finally {
    await client.close();
  }
  return findings;
}

function clockSkew(date: Date): Finding {
  const skewMs = Math.abs(systemClock.now() - date.getTime());
  const text = `${(skewMs / 1000).toFixed(0)} s from the partner's Date header`;
  return skewMs <= SKEW_TOLERATED_MS
    ? ok('clock', text)
    : warn('clock', text, 'synchronise this host’s clock: ages are compared with the partner’s timestamps');
}

async function* askPartner(
  config: Config,
  client: PartnerClient,
  permit: () => Promise<Permit>,
): AsyncGenerator<Finding> {
  const meta = await client.manifest(await permit());
  yield ok('credential', 'the manifest route answers');
  const age = meta.generatedAt === null ? 'of unknown age' : `generated ${meta.generatedAt.toISOString()}`;
  yield ok('manifest', `${meta.skuCount ?? 'an unknown number of'} SKUs, ${age}`);
  const skus: string[] = [];
  const stop = new AbortController();
  try {
    const batches = readManifestFile({
      url: meta.url,
      baseUrl: new URL(config.partner.baseUrl),
      origins: config.partner.filesOrigins,
      timeoutMs: config.partner.timeoutMs,
      signal: stop.signal,
      batchSize: SAMPLE_SKUS,
    });
    for await (const { lines } of batches) {
      skus.push(...lines.filter((line) => line.priceSource === 'snapshot').map(({ sku }) => sku));
      if (skus.length >= SAMPLE_SKUS) break;
    }
  } finally {
    stop.abort();
  }
  yield skus.length > 0
    ? ok('manifest file', 'downloads and reads')
    : warn('manifest file', 'holds no snapshot-priced line', 'nothing to ask the price routes for');
  if (skus.length === 0) return;
  yield* judgeBulk(await client.bulk(await permit(), skus.slice(0, SAMPLE_SKUS)), skus.length);
}

/** What one bulk answer tells of the undocumented names. */
export function* judgeBulk(answer: BulkAnswer, asked: number): Generator<Finding> {
  const records = [...answer.results.values()].filter((record) => 'sizes' in record);
  if (
    answer.requested === 0 ||
    (records.length === 0 && answer.notFound.length === 0 && answer.deferred.length === 0)
  ) {
    yield fail(
      'bulk body',
      `the answer names none of ${asked} SKUs`,
      'set PARTNER_BULK_BODY_KEY to the body key that the partner expects',
    );
    return;
  }
  yield ok('bulk body', `${records.length} of ${asked} SKUs answered with a record`);
  const entries = records.flatMap((record) => [...record.sizes.values()]);
  const unpriced = entries.filter(({ price, entry }) => price === null && entry !== null).length;
  if (entries.length === 0)
    yield warn('prices', 'no size_map entry in the sample', 'run doctor again, or look at a SKU by hand');
  else if (unpriced === entries.length) {
    yield fail(
      'prices',
      'no size_map entry carries a readable price',
      'set PARTNER_PRICE_FIELDS to the field that holds it',
    );
  } else if (unpriced > 0)
    yield warn(
      'prices',
      `${unpriced} of ${entries.length} entries carry no readable price`,
      'look at catalog.prices.entry',
    );
  else yield ok('prices', `${entries.length} size_map entries read`);
}

function partnerFailure(error: unknown): Finding {
  if (!(error instanceof PartnerError)) {
    return fail('partner', error instanceof Error ? error.message : 'failed', 'see above');
  }
  const check =
    AUTH_CLASS.has(error.kind) || error.kind === 'account-not-configured' ? 'credential' : error.route;
  return fail(check, error.message, error.hint);
}
