import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { REBASE_AUDIT } from '../../src/store/catalog/audit.ts';
import * as statements from '../../src/store/catalog/baseline-sql.ts';
import * as compare from '../../src/store/catalog/compare-sql.ts';
import * as unread from '../../src/store/catalog/unread-lines.ts';
import { LOCK_NEW_SKUS } from '../../src/store/connection/locks.ts';

/** What a manifest brings with it, and its two files. */
export interface Manifest {
  readonly snapshotId: string;
  readonly generatedAt: Date;
  readonly lines: number;
  readonly gzip: string;
  readonly split: string;
}

interface Statement {
  readonly text: string;
  readonly values?: readonly (string | number | Date | null)[];
}

/** No claim is newer: of no SKU the price was asked for after the snapshot was known. */
const NEWEST_CLAIM = '9223372036854775807';

/** The statements of a baseline from comparing on, as store/catalog/baseline.ts sends them. `token` is the mirror's. */
function mergeOf({ snapshotId, generatedAt, lines }: Manifest, token: string | null): Statement[] {
  const requestedAt = new Date();
  return [
    { text: compare.BEGIN_COMPARE },
    { text: compare.COMPARE },
    { text: compare.COUNT_COMPARED },
    { text: 'commit' },
    { text: 'analyze differing' },
    { text: 'begin' },
    { text: 'select from catalog_internal.sync for update' },
    { text: LOCK_NEW_SKUS },
    { text: statements.REPORTED_UNSEEN, values: [requestedAt, token] },
    { text: statements.DIFF, values: [requestedAt, NEWEST_CLAIM, token, generatedAt, requestedAt] },
    { text: 'analyze diff' },
    { text: statements.LOCK_LEDGER },
    { text: statements.INSERT_NEW },
    { text: statements.UPDATE_CHANGED },
    { text: statements.UPDATE_ABSENT },
    { text: statements.DROP_ORPHANS },
    { text: statements.LOCK_SCOPE },
    { text: statements.READ_SCOPED },
    { text: statements.MARK_NEW },
    { text: statements.MARK_DUE },
    { text: statements.SWEEP_RELISTED },
    { text: unread.INSERT_REJECTED },
    { text: unread.MARK_REJECTED, values: [requestedAt, token] },
    { text: unread.DISTRUST_UNREAD, values: [requestedAt, token] },
    { text: unread.TRUST_READ },
    { text: REBASE_AUDIT, values: [snapshotId, token] },
    { text: statements.COUNT_DIFF },
    moveToken({ snapshotId, generatedAt, lines }, token),
    { text: statements.ADD_CHANGES },
    { text: 'commit' },
  ];
}

const moveToken = (
  { snapshotId, generatedAt, lines }: Pick<Manifest, 'snapshotId' | 'generatedAt' | 'lines'>,
  token: string | null,
): Statement => ({ text: statements.MOVE_TOKEN, values: [snapshotId, generatedAt, token, lines, null] });

async function tokenOf(client: pg.Client): Promise<string | null> {
  const { rows } = await client.query<{ token: string | null }>(
    'select snapshot_id as token from catalog_internal.sync',
  );
  return rows[0]?.token ?? null;
}

/** The statement as psql takes it, which has no parameters. */
function literally({ text, values = [] }: Statement): string {
  return `${text.replaceAll(/\$(\d)/g, (_, nth: string) => {
    const value = values[Number(nth) - 1] ?? null;
    return value === null ? 'null' : `'${value instanceof Date ? value.toISOString() : value}'`;
  })};\n`;
}

export async function hasPsql(): Promise<boolean> {
  const child = spawn('psql', ['--version'], { stdio: 'ignore' });
  return await new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}

/** What a user would do instead: the file through psql into one jsonb column, taken apart and merged in SQL. */
export async function byPsql(databaseUrl: string, manifest: Manifest): Promise<void> {
  const token = await withClient(databaseUrl, tokenOf);
  const [first = '', ...staging] = compare.CREATE_STAGING.split(';');
  const script = [
    `${first};`,
    ...staging.filter((text) => !text.includes('table staging')).map((text) => `${text};`),
    'create temporary table raw (line jsonb);',
    `\\copy raw from program 'gzip -dc ${manifest.gzip}' csv quote e'\\x01' delimiter e'\\x02'`,
    `create temporary view staging as select line->>'sku' as sku, (line->>'sizes')::integer as sizes, line->>'hash' as hash,
      line->>'price_source' as price_source, (line->>'updated_at')::timestamptz as updated_at from raw;`,
    ...mergeOf(manifest, token).map(literally),
  ];
  const child = spawn('psql', ['-qXAt', '-v', 'ON_ERROR_STOP=1', databaseUrl], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  child.stdin.end(script.join('\n'));
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`psql ended with ${code}`);
}

async function withClient<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function withStaged(
  databaseUrl: string,
  manifest: Manifest,
  merge: (client: pg.Client) => Promise<void>,
): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await client.query(compare.CREATE_STAGING);
    const lines = createReadStream(manifest.split, { highWaterMark: 256 * 1024 });
    await pipeline(lines, client.query(copyFrom(compare.COPY_STAGING)));
    await merge(client);
  });
}

/**
 * What the machine allows at best: lines that are split and checked already, copied and merged as the mirror does it.
 */
export async function floor(databaseUrl: string, manifest: Manifest): Promise<void> {
  await withStaged(databaseUrl, manifest, async (client) => {
    for (const { text, values = [] } of mergeOf(manifest, await tokenOf(client)))
      await client.query(text, [...values]);
  });
}

/** The same lines, merged by one upsert that leaves alone what is the same. */
export async function byUpsert(databaseUrl: string, manifest: Manifest): Promise<void> {
  await withStaged(databaseUrl, manifest, async (client) => {
    await client.query(`
      begin;
      create temporary table written (sku text, is_new boolean, live boolean) on commit drop;
      with written_rows as (
        insert into catalog.skus as s (sku, price_source, hash, sizes, in_manifest, updated_at)
        select sku, price_source, hash, sizes, true, updated_at from staging
        on conflict (sku) do update set price_source = excluded.price_source, hash = excluded.hash, sizes = excluded.sizes,
          in_manifest = true, updated_at = excluded.updated_at,
          hash_before_live = case when excluded.price_source = 'live' then coalesce(s.hash, s.hash_before_live) end
        where (s.price_source, s.hash, s.sizes, s.in_manifest, s.updated_at)
          is distinct from (excluded.price_source, excluded.hash, excluded.sizes, true, excluded.updated_at)
        returning sku, xmax = 0 as is_new, price_source = 'live' as live
      )
      insert into written select * from written_rows;
      create temporary table gone on commit drop as
        select sku from catalog.skus s where in_manifest and not exists (select from staging t where t.sku = s.sku);
      update catalog.skus s set in_manifest = false, hash = null from gone where s.sku = gone.sku;
      select catalog_internal.mark_due(array_agg(sku), case when is_new then 'new' else 'changed' end, live)
        from written group by is_new, live;
      select catalog_internal.mark_due(array_agg(sku), 'absent') from gone having count(*) > 0`);
    await client.query(literally(moveToken(manifest, await tokenOf(client))));
    await client.query('commit');
  });
}
