import type { MirrorConfig } from '../../config/config.ts';
import { openRedis } from '../../queues/backend.ts';
import { fail, type CheckResult, ok, warn } from './check.ts';
import { judgeEncryption } from './connection.ts';

/** BullMQ works from 5.0 on, and advises 6.2 (docs.bullmq.io). */
const MIN_MAJOR = 5;
const ADVISED = [6, 2] as const;
const CONNECT_MS = 10_000;

/** What INFO of a Redis says of its fitness for queues. `prefix`: QUEUE_PREFIX. */
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

/** Version, persistence, eviction and encryption of Redis, where the queues are there. */
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
  // What it says is more than the refused command does.
  let lastError: Error | null = null;
  redis.on('error', (error) => (lastError = error));
  try {
    await redis.connect();
    const tls = judgeEncryption('redis tls', 'REDIS_URL', url);
    return [...judgeRedis(await redis.info(), config.queues.prefix), ...(tls === null ? [] : [tls])];
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
