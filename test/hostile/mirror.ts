import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { found, answerAsked } from '../store/support.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { CREATE_REFILL } from '../support/seed.ts';
import type { Ended, Work } from './subject.ts';
import { AN_HOUR_AGO, FORMER, goodManifest, type Reply, sendBytes, sendJson } from './upstream.ts';

/** What an upstream answers on each route. `bulk` receives the SKUs that were asked for. */
export interface Replies {
  manifest: Reply;
  file: Reply;
  delta: Reply;
  bulk: (response: ServerResponse, asked: readonly string[]) => unknown;
}

/** How a piece of work ended, and by how much each counter moved. */
export interface Finished extends Ended {
  readonly moved: Readonly<Record<string, number>>;
}

/**
 * A mirror with a baseline and prices, run by a process of its own against an upstream that answers as the test
 * says.
 */
export interface HostileMirror {
  readonly sql: Sql;
  run(work: Work, replies: Partial<Replies>): Promise<Finished>;
  /**
   * Returns a digest of each table of `catalog`, of the ledger and of the token. Equal digests mean that nothing
   * was written.
   */
  digest(): Promise<Record<string, string>>;
  /** Returns the SKUs with any row in these tables that differs from the baseline. */
  moved(tables: readonly string[]): Promise<string[]>;
  /** Resets every table to the baseline. */
  restore(): Promise<void>;
}

/** The seller's tables, each keyed by SKU. */
export const CATALOG = ['skus', 'prices', 'products', 'price_history', 'product_history'].map(
  (table) => `catalog.${table}`,
);
export const LEDGER = 'catalog_internal.due';
const TOKEN =
  'snapshot_id, snapshot_generated_at, manifest_applied_at, manifest_lines, delta_checked_at, snapshot_moved_at';
const nothing: Reply = (response) => sendBytes(response, Buffer.alloc(0), { status: 500 });

class Rig implements HostileMirror {
  readonly #heapMiB: number;
  #database: TestDatabase | undefined;
  #sql: Sql | undefined;
  #server: Server | undefined;
  #child: ChildProcess | undefined;
  #replies: Replies = { manifest: nothing, file: nothing, delta: nothing, bulk: nothing };
  #before: Readonly<Record<string, number>> = {};
  #tables: readonly string[] = [];

  get sql(): Sql {
    if (this.#sql === undefined) throw new Error('not open');
    return this.#sql;
  }

  constructor(heapMiB: number) {
    this.#heapMiB = heapMiB;
  }

  async open(): Promise<void> {
    this.#database = await createDatabase('migrated');
    this.#sql = connect(this.#database.url, { max: 4 });
    this.#server = createServer((request, response) => void this.#answer(request, response));
    await new Promise<void>((resolve) => {
      this.#server?.listen(0, '127.0.0.1', resolve);
    });
    const { port } = this.#server.address() as AddressInfo;
    const subject = new URL('./subject.ts', import.meta.url).pathname;
    this.#child = fork(subject, [this.#database.url, `http://127.0.0.1:${port}`], {
      env: { PATH: process.env['PATH'] },
      execArgv: [`--max-old-space-size=${this.#heapMiB}`],
    });
    await this.#fill();
  }

  async close(): Promise<void> {
    this.#child?.kill('SIGKILL');
    this.#server?.closeAllConnections();
    this.#server?.close();
    await this.#sql?.end({ timeout: 2 });
    await this.#database?.drop();
  }

  async run(work: Work, replies: Partial<Replies>): Promise<Finished> {
    this.#replies = { manifest: nothing, file: nothing, delta: nothing, bulk: nothing, ...replies };
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null)
      throw new Error('the process has ended');
    const listening = new AbortController();
    const { signal: over } = listening;
    const ended = Promise.race([
      once(child, 'message', { signal: over }).then(([message]) => message as Ended),
      once(child, 'exit', { signal: over }).then(([code, signal]): never => {
        throw new Error(`the process died of it: code ${String(code)}, signal ${String(signal)}`);
      }),
    ]);
    child.send(work);
    const result = await ended.finally(() => listening.abort());
    const moves = Object.entries(result.counters)
      .map(([name, value]) => [name, value - (this.#before[name] ?? 0)] as const)
      .filter(([, by]) => by !== 0);
    this.#before = result.counters;
    return { ...result, moved: Object.fromEntries(moves) };
  }

  async digest(): Promise<Record<string, string>> {
    const tables = [...this.#tables.filter((table) => table.startsWith('catalog.')), 'catalog_internal.due'];
    const parts = tables.map(
      (table) =>
        `select '${table}' as part, md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as sum from ${table} t`,
    );
    parts.push(`select 'token', row(${TOKEN})::text from catalog_internal.sync`);
    const rows = await this.sql.unsafe<{ part: string; sum: string }[]>(parts.join(' union all '));
    return Object.fromEntries(rows.map(({ part, sum }) => [part, sum]));
  }

  async moved(tables: readonly string[]): Promise<string[]> {
    const parts = tables.map(
      (table) => `
        select coalesce(now.sku, was.sku) as sku from
        (select sku, array_agg(t::text order by t::text) as rows from ${table} t group by sku) now
        full join (select sku, array_agg(t::text order by t::text) as rows from seed."${table}" t group by sku) was
        using (sku) where now.rows is distinct from was.rows`,
    );
    const rows = await this.sql.unsafe<{ sku: string }[]>(parts.join(' union '));
    return rows.map(({ sku }) => sku).toSorted();
  }

  async restore(): Promise<void> {
    await this.sql.begin(async (tx) => {
      await tx.unsafe('set local session_replication_role = replica');
      const statements = this.#tables.map((table) => `select seed.refill('${table}', '${table}')`);
      await tx.unsafe(statements.join(';'));
    });
  }

  async #answer(request: AsyncIterable<Buffer> & { url?: string }, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    let text = '';
    for await (const chunk of request) text += chunk.toString();
    const route = new URL(request.url ?? '', 'http://localhost').pathname;
    if (route === '/file') return void this.#replies.file(response);
    if (route === '/partner/catalog/manifest') return void this.#replies.manifest(response);
    if (route === '/partner/catalog/delta') return void this.#replies.delta(response);
    const { skus } = JSON.parse(text) as { skus: string[] };
    this.#replies.bulk(response, skus);
  }

  /** Applies the former manifest, and a price for every SKU in it. */
  async #fill(): Promise<void> {
    const { meta, file } = goodManifest(FORMER, 'former', AN_HOUR_AGO);
    const filled = await this.run('manifest', {
      manifest: (response) => sendJson(response, meta),
      file: (response) => sendBytes(response, file),
    });
    if (filled.kind !== 'done') throw new Error(`no baseline: ${JSON.stringify(filled)}`);
    const metadata = { name: 'a shoe', product: '{"name":"a shoe"}' };
    await answerAsked(
      this.sql,
      ...FORMER.map(({ sku }, n) => found(sku, { 'US 9': 1000 + n, 'US 10': 2000 + n }, metadata)),
    );
    const tables = await this.sql<{ name: string }[]>`
      select schemaname || '.' || tablename as name from pg_tables
      where schemaname in ('catalog', 'catalog_internal') and tablename <> 'migrations'
      -- First the SKUs, with which others go, and whose prices are written into the history.
      order by tablename <> 'skus'`;
    this.#tables = tables.map(({ name }) => name);
    await this.sql.unsafe(`create schema seed; ${CREATE_REFILL}`);
    for (const table of this.#tables) await this.sql.unsafe(`create table seed."${table}" as table ${table}`);
  }
}

/**
 * Returns a hostile mirror for the test file, whose process dies beyond `heapMiB` of heap. Must be called at the
 * file's top level.
 */
export function useHostileMirror(heapMiB: number): HostileMirror {
  const rig = new Rig(heapMiB);
  beforeAll(() => rig.open());
  afterAll(() => rig.close());
  return rig;
}
