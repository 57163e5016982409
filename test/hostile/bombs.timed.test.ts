import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, startProgram } from '../support/process.ts';
import { QUICK } from '../support/stack.ts';
import { BOMBS, type Bomb, MILLION_REMOVED } from './bombs.ts';
import { goodManifest, type Line, sendBytes, sendJson } from './upstream.ts';

/* A daemon with a heap of 256 MB, whose partner answers a request with a bomb. */

const HEAP_MB = 256;
const ANSWERS_WITHIN_MS = 500;
/**
 * For a list of a million, which takes 0.6 to 0.8 s to read on a slow machine: the default timeout of a Kubernetes
 * probe.
 */
const LONGEST_WITHIN_MS = 1000;
const TRIES = 3;
const SKUS = ['SKU-0001', 'SKU-0002', 'SKU-0003'];

let database: TestDatabase;
let sql: Sql;
let daemon: Program;
/** Sent in place of the next answer of its route. */
let bomb: { readonly route: Bomb['route']; readonly body: Buffer } | null = null;
let slowestMs = 0;
const watching = new AbortController();

const lines: Line[] = SKUS.map((sku) => ({
  sku,
  sizes: 1,
  hash: `h-${sku}`,
  price_source: 'snapshot',
  updated_at: '2026-11-20T00:00:00Z',
}));
const { meta, file } = goodManifest(lines, 'first');

function reply(route: Bomb['route'] | 'file', response: ServerResponse): void {
  if (bomb?.route === route) {
    const { body } = bomb;
    bomb = null;
    return sendBytes(response, body, { headers: { 'content-encoding': 'gzip' } });
  }
  if (route === 'manifest') return sendJson(response, meta);
  if (route === 'file') return sendBytes(response, file);
  if (route === 'delta')
    return sendJson(response, { changed: [], removed: [], now_live: [], to_snapshot: 'first' });
  const results = Object.fromEntries(SKUS.map((sku) => [sku, { code: '0000', size_map: { 9: 100 } }]));
  return sendJson(response, { results, not_found: [], deferred: [], errors: [] });
}

const ROUTES = {
  '/partner/catalog/manifest': 'manifest',
  '/partner/catalog/delta': 'delta',
  '/partner/lowest/bulk': 'bulk',
  '/file': 'file',
} as const;
const partner = createServer((request, response) => {
  const path = new URL(request.url ?? '', 'http://x').pathname as keyof typeof ROUTES;
  request.resume().on('end', () => reply(ROUTES[path], response));
});

/** Polls `/livez`. */
async function watch(): Promise<void> {
  const { port } = await daemon.until('app.started');
  while (!watching.signal.aborted) {
    const from = performance.now();
    const { status } = await fetch(`http://127.0.0.1:${String(port)}/livez`);
    slowestMs = Math.max(slowestMs, performance.now() - from);
    expect(status).toBe(200);
    await systemClock.sleep(20, watching.signal);
  }
}

beforeAll(async () => {
  await new Promise<void>((resolve) => {
    partner.listen(0, '127.0.0.1', resolve);
  });
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 2 });
  daemon = startProgram(['run'], {
    ...QUICK,
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
    DATABASE_URL: database.url,
    PARTNER_BASE_URL: `http://127.0.0.1:${(partner.address() as AddressInfo).port}`,
    PARTNER_API_KEY: 'key',
    PARTNER_SECRET: 'secret',
    PARTNER_TIMEOUT: '60s',
    DELTA_INTERVAL: '1s',
    LIVE_INTERVAL: '1h',
  });
  await eventually(async () => {
    const [row] = await sql<[{ priced: number }]>`
      select count(*)::int as priced from catalog.skus where state = 'priced'`;
    if (row.priced < SKUS.length) throw new Error(`${row.priced} SKUs are priced`);
  });
});

afterAll(async () => {
  watching.abort();
  await daemon[Symbol.asyncDispose]();
  partner.closeAllConnections();
  partner.close();
  await sql.end({ timeout: 2 });
  await database.drop();
});

/** Makes the daemon ask the bomb's route, and waits for the outcome that it logs. All other answers are good. */
async function set({ route, becomes, name }: Bomb, body: Buffer): Promise<void> {
  const before = daemon.logged('partner.request').length;
  bomb = { route, body };
  if (route === 'bulk') await refreshSkus(sql, SKUS);
  else {
    // Removes traces of earlier bombs: after two deltas that are too large, it waits for a newer manifest than this
    // partner has.
    await sql`update catalog_internal.sync set chain_broken_at = null, rejected_snapshot_id = null`;
    await sql`update catalog_internal.tasks set next_at = now(), failures = 0 where task = ${route}`;
  }
  await eventually(() => {
    if (bomb !== null) throw new Error(`${name}: nobody asked`);
    const outcomes = daemon
      .logged('partner.request')
      .slice(before)
      .flatMap((one) => (one['route'] === route ? [one['outcome']] : []));
    if (!outcomes.includes(becomes)) throw new Error(`${name}: ${outcomes.join(', ')}, not ${becomes}`);
  });
}

/**
 * Does the same, and requires `/livez` to answer in time. Other load on the machine may delay an answer once; the
 * bomb would delay it every time.
 */
async function setInTime(one: Bomb, body: Buffer): Promise<void> {
  const slowest: number[] = [];
  while (slowest.length < TRIES) {
    slowestMs = 0;
    await set(one, body);
    if (slowestMs <= ANSWERS_WITHIN_MS) return;
    slowest.push(Math.round(slowestMs));
  }
  throw new Error(`${one.name}: /livez took ${slowest.join(', ')} ms`);
}

test(
  `${BOMBS.length} bombs: each has its outcome in the log, and /livez answers throughout`,
  { timeout: 600_000 },
  async () => {
    expect(BOMBS.length).toBeGreaterThanOrEqual(40);
    const bodies = BOMBS.map((one) => [one, one.body()] as const);
    const million = MILLION_REMOVED.body();
    const watched = watch();
    const failed: string[] = [];
    for (const [one, body] of bodies) {
      await setInTime(one, body).catch((error: unknown) => failed.push(String(error)));
    }
    slowestMs = 0;
    await set(MILLION_REMOVED, million);
    await eventually(
      async () => {
        const [row] = await sql<[{ gone: number }]>`
          select (select count(*)::int from catalog.skus where state = 'removed') as gone`;
        if (
          row.gone < 1_000_000 ||
          daemon.logged('delta.applied').every((line) => line['removed'] !== 1_000_000)
        )
          throw new Error(`${row.gone} SKUs are removed`);
      },
      { within: 300_000, every: 1000 },
    );
    if (slowestMs > LONGEST_WITHIN_MS)
      failed.push(`${MILLION_REMOVED.name}: /livez took ${Math.round(slowestMs)} ms`);
    watching.abort();
    await watched;
    expect(failed).toEqual([]);
    expect(daemon.logged('app.started')).toHaveLength(1);
    await refreshSkus(sql, SKUS);
    await eventually(async () => {
      const [row] =
        await sql`select count(*)::int as fresh from catalog.sku_trust where not owed and doubt is null`;
      expect(row).toEqual({ fresh: 3 });
    });
  },
);
