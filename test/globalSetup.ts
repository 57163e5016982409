import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GenericContainer, getContainerRuntimeClient } from 'testcontainers';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import { connect as connectPostgres } from '../src/store/connection/db.ts';
import { FAST_SETTINGS } from './postgres/server.ts';
import { MIGRATED } from './support/db.ts';
import { makeTemplate, migrateTemplate } from './support/template.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /**
     * Administrator's URL of the Postgres server that the whole run shares; `test/support/db.ts` creates databases
     * on it.
     */
    postgresUrl: string;
    /** A Redis that tests may use, or null if there is none. */
    redisUrl: string | null;
  }
}

type Release = () => Promise<void>;

const LOCAL_REDIS_PORT = 6379;

/** Decides whether something on 127.0.0.1:`port` answers PING like an unprotected Redis within half a second. */
async function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const finish = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.setTimeout(500, () => finish(false));
    socket.on('error', () => finish(false));
    socket.on('connect', () => socket.write('PING\r\n'));
    socket.on('data', (data) => finish(data.toString('latin1').startsWith('+PONG')));
  });
}

async function startRedisContainer(): Promise<{ url: string; release: Release } | null> {
  try {
    await getContainerRuntimeClient();
    const container = await new GenericContainer('redis:7-alpine').withExposedPorts(LOCAL_REDIS_PORT).start();
    const url = `redis://${container.getHost()}:${container.getMappedPort(LOCAL_REDIS_PORT)}`;
    return {
      url,
      release: async () => {
        await container.stop();
      },
    };
  } catch {
    // Without an engine or an image, the tests that need Redis skip themselves.
    return null;
  }
}

async function findRedis(): Promise<{ url: string; release: Release } | null> {
  const nothingToRelease = () => Promise.resolve();
  const given = process.env['REDIS_URL'];
  if (given) return { url: given, release: nothingToRelease };
  if (await answersPing(LOCAL_REDIS_PORT)) {
    return { url: `redis://127.0.0.1:${LOCAL_REDIS_PORT}`, release: nothingToRelease };
  }
  return startRedisContainer();
}

/**
 * Hundreds of daemons log in some ten times each, and by default each login costs a client 4096 rounds of hashing.
 */
async function cheapenLogins(serverUrl: string): Promise<void> {
  const admin = connectPostgres(serverUrl, { max: 1 });
  const { username, password } = new URL(serverUrl);
  await admin.unsafe(`set scram_iterations = 1; alter role "${username}" password '${password}'`);
  await admin.end();
}

/**
 * By default, hundreds of short sessions would plan every statement five times before using a generic plan; this
 * takes a tenth of the time. With `npm run test:postgres` servers plan as usual.
 */
const PLANNED_ONCE = { plan_cache_mode: 'force_generic_plan' };

/**
 * Starts the run's own server, unless `TEST_POSTGRES_URL` has the administrator's URL of another: `npm run
 * test:postgres` sets it.
 */
async function findPostgres(dataDir: string): Promise<{ url: string; stop: Release }> {
  const url = process.env['TEST_POSTGRES_URL'];
  if (url !== undefined) return { url, stop: () => Promise.resolve() };
  const postgres = await startEmbeddedPostgres({ dataDir, settings: { ...FAST_SETTINGS, ...PLANNED_ONCE } });
  await cheapenLogins(postgres.url);
  return postgres;
}

/** Starts what the tests share, tells them where it is, and returns the function that stops it all. */
export default async function setup(project: TestProject): Promise<Release> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-test-'));
  // If root runs the tests, the server runs as another user and has to pass through this folder.
  await chmod(folder, 0o711);
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  let stopPostgres: Release = () => Promise.resolve();
  try {
    const postgres = await findPostgres(join(folder, 'pg'));
    stopPostgres = postgres.stop;
    await makeTemplate(postgres.url, MIGRATED, migrateTemplate);
    const redis = await findRedis();
    project.provide('postgresUrl', postgres.url);
    project.provide('redisUrl', redis?.url ?? null);
    return async () => {
      await Promise.all([postgres.stop(), redis?.release()]);
      await removeFolder();
    };
  } catch (error) {
    await stopPostgres();
    await removeFolder();
    throw error;
  }
}
