import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { withMirrorDatabase } from './server.ts';

/*
 * A daemon, a process of its own, that fills a mirror at the pace of an account of 200 requests a minute, of which it
 * has 60 %, from a sandbox that answers at once: at the partner its answer's time comes on top.
 */

/**
 * So many SKUs the sandbox has: more than calls can carry meanwhile. To the others it answers that they are not found.
 */
const KNOWN = 30_000;
const LIVE_SHARE = 0.05;
/** PARTNER_RATE_LIMIT 200 with PARTNER_RATE_SHARE 0.6, less one request and half a second of guard. */
export const CALL_MS = 60_000 / 118;
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export interface Fill {
  readonly url: string;
  readonly sql: Sql;
  readonly sandbox: Sandbox;
}

export async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await pause(250);
}

/**
 * A baseline is there; then all that the sandbox does not have becomes due, too, after what it has. Their names begin
 * with X.
 */
async function dueAll(sql: Sql, skus: number): Promise<void> {
  await until(async () => (await sql`select from catalog_internal.due limit 1`).length > 0);
  const names = sql`select format('X%s', n) as sku from generate_series(1, ${skus - KNOWN}::int) n`;
  await sql`insert into catalog.skus (sku, in_manifest, price_source) select sku, true, 'snapshot' from (${names}) n`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, due_at, generation)
    select sku, catalog_internal.lane_of('new'), 'new', now(), 1 from (${names}) n`;
  await sql`analyze catalog.skus, catalog_internal.due`;
}

/**
 * Does `work` while so many SKUs are due, and says how many still were at its end. Throws where they were too few to
 * be a fill.
 */
export async function besideFill<T>(
  options: { readonly skus: number; readonly env?: Readonly<Record<string, string>> },
  work: (fill: Fill) => Promise<T>,
): Promise<{ readonly result: T; readonly due: number }> {
  return await withMirrorDatabase(
    async ({ url, sql }) => {
      const sandbox = await startSandbox({ skus: KNOWN, liveShare: LIVE_SHARE, rateLimit: 200 });
      await sql`insert into catalog_internal.pace (ceiling, raised_at) values (1000, now())`;
      const daemon = spawn(process.execPath, [MAIN, 'run'], {
        env: {
          PATH: process.env['PATH'],
          DATABASE_URL: url,
          PARTNER_BASE_URL: sandbox.url,
          PARTNER_API_KEY: sandbox.apiKey,
          PARTNER_SECRET: sandbox.secret,
          HTTP_PORT: '0',
          LOG_LEVEL: 'error',
          ...options.env,
        },
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      try {
        await dueAll(sql, options.skus);
        const result = await work({ url, sql, sandbox });
        const [{ due }] = await sql<[{ due: number }]>`
          select count(*)::int as due from catalog_internal.due where due_at <= now()`;
        if (due < options.skus * 0.9) throw new Error(`only ${due} SKUs are due at the end`);
        return { result, due };
      } finally {
        daemon.kill('SIGTERM');
        await once(daemon, 'exit');
        await sandbox.close();
      }
    },
    { max: 3 },
  );
}
