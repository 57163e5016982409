import { randomBytes } from 'node:crypto';
import { QueueKeys } from 'bullmq';
import type { Redis } from 'ioredis';
import type { MirrorConfig } from '../../config/config.ts';
import { isOutOfTime, within } from '../../lib/clock.ts';
import { createQueueBackend, openRedis, redisCode } from '../../queues/backend.ts';
import { fail, type CheckResult, ok, warn } from './check.ts';
import { judgeEncryption } from './connection.ts';

/** BullMQ works with Redis 5.0 and newer, and recommends 6.2 (docs.bullmq.io). */
const MIN_MAJOR = 5;
const ADVISED = [6, 2] as const;
const CONNECT_MS = 10_000;
/** A job takes only milliseconds more than its delay. */
const JOB_WITHIN_MS = 5000;
/** Longer than the worker takes to begin waiting, because jobs of schedules come to workers that wait for them. */
const JOB_DELAY_MS = 500;
const CLOSE_WITHIN_MS = 1000;

/** Judges from INFO whether a Redis is fit for queues. `prefix`: QUEUE_PREFIX. */
export function judgeRedis(info: string, prefix: string): CheckResult[] {
  const value = (key: string) => new RegExp(`^${key}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
  const findings = [versionOf(value('redis_version'), prefix)];
  if (value('role') === 'slave')
    findings.push(fail('redis role', 'a read-only replica', 'set REDIS_URL to the primary'));
  if (value('cluster_enabled') === '1')
    findings.push(
      fail(
        'redis cluster',
        'a node of a Redis Cluster, which answers MOVED for keys of other nodes',
        'set REDIS_URL to a Redis that is no cluster, or leave it out: then the queues are in Postgres',
      ),
    );
  const policy = value('maxmemory_policy');
  findings.push(
    policy === 'noeviction'
      ? ok('redis policy', 'noeviction')
      : fail(
          'redis policy',
          policy || 'unknown',
          'set maxmemory-policy noeviction, because evicted keys lose jobs',
        ),
  );
  findings.push(persistence(value));
  return findings;
}

function versionOf(version: string, prefix: string): CheckResult {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const text = `version ${version}, key prefix ${prefix}:`;
  if (major < MIN_MAJOR) return fail('redis', text, 'upgrade to Redis 6.2 or newer');
  const old = major < ADVISED[0] || (major === ADVISED[0] && minor < ADVISED[1]);
  return old ? warn('redis', text, 'BullMQ recommends Redis 6.2 or newer') : ok('redis', text);
}

function persistence(value: (key: string) => string): CheckResult {
  if (value('aof_enabled') === '1') {
    return value('aof_last_write_status') === 'err'
      ? fail('redis aof', 'the last write to disk failed', 'check the disk of the Redis server')
      : ok('redis aof', 'on');
  }
  if (value('rdb_last_bgsave_status') === 'err')
    return fail(
      'redis aof',
      'off, and the last snapshot failed',
      'check the disk of the Redis server: it may reject writes',
    );
  return warn(
    'redis aof',
    'off',
    'optional: nothing is lost, because schedules are restored at a restart; appendonly yes avoids that pause',
  );
}

/** Judges INFO, or reports that an ACL denies it, which does not matter to the queues. */
async function examine(redis: Redis, prefix: string): Promise<CheckResult[]> {
  try {
    return judgeRedis(await redis.info(), prefix);
  } catch (error) {
    if (redisCode(error) !== 'NOPERM') throw error;
    return [
      warn(
        'redis',
        `key prefix ${prefix}:, and version, eviction and persistence are not known: INFO is denied`,
        'add +info to the ACL of this user to have them checked',
      ),
    ];
  }
}

/**
 * Passes a job of its own through Redis, as daemons do all the time. Nothing less shows what ACLs, memory, disk or
 * somebody else's keys forbid.
 */
async function tryJob(redis: Redis, url: string, prefix: string): Promise<CheckResult> {
  const own = `${prefix}:doctor-${randomBytes(4).toString('hex')}`;
  const queueName = 'maintenance';
  let lastError: Error | null = null;
  const onError = (error: Error) => (lastError = error);
  const backend = createQueueBackend({
    redisUrl: () => url,
    databaseUrl: '',
    connections: 1,
    answerWithinMs: CONNECT_MS,
    prefix: own,
    onError,
  });
  const { promise: taken, resolve: take } = Promise.withResolvers<void>();
  const queue = await backend.openQueue(queueName);
  const worker = await backend.openWorker(queueName, async () => take(), 1);
  try {
    void worker.run().catch(onError);
    await within(Promise.all([queue.add('doctor', {}, { delay: JOB_DELAY_MS }), taken]), JOB_WITHIN_MS);
    return ok('redis jobs', 'a job was added and taken');
  } catch (error) {
    const cause = ((isOutOfTime(error) ? lastError : null) ?? error) as Error;
    return fail(
      'redis jobs',
      `a job does not get through: ${cause.message}`,
      `correct that in Redis; BullMQ needs all commands but the dangerous ones, and the keys ${prefix}:*`,
    );
  } finally {
    await within(
      worker.close().then(() => queue.close()),
      CLOSE_WITHIN_MS,
    ).catch(() => {});
    await redis.del(Object.values(new QueueKeys(own).getKeys(queueName))).catch(() => {});
    await backend.close();
  }
}

/** Checks version, persistence, eviction, a job, and encryption of Redis, if the queues are there. */
export async function checkRedis(config: MirrorConfig): Promise<CheckResult[]> {
  const url = config.queues.redisUrl?.read();
  if (url === undefined) return [ok('queues', 'in Postgres')];
  const redis = openRedis(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    commandTimeout: CONNECT_MS,
    retryStrategy: () => null,
  });
  // It says more than the error of the refused command.
  let lastError: Error | null = null;
  redis.on('error', (error) => (lastError = error));
  try {
    await redis.connect();
    const tls = judgeEncryption('redis tls', 'REDIS_URL', url);
    const { prefix } = config.queues;
    const findings = [...(await examine(redis, prefix)), await tryJob(redis, url, prefix)];
    return [...findings, ...(tls === null ? [] : [tls])];
  } catch (error) {
    return [
      fail(
        'redis',
        ((lastError ?? error) as Error).message,
        'check REDIS_URL, and that the server is running',
      ),
    ];
  } finally {
    redis.disconnect();
  }
}
