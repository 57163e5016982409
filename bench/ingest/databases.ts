import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { COPY_STAGING, CREATE_STAGING } from '../../src/store/catalog/compare-sql.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';

/** What a piece of work wrote, and what it left behind. */
export interface Written {
  readonly walBytes: number;
  readonly deadTuples: number;
  /** Tells one end state from another: SKUs as the manifest says them, and what is due. */
  readonly digest: string;
}

const STATE = `
  select md5(concat_ws('|',
    (select sum(hashtextextended(row(sku, state, price_source, hash, sizes, in_manifest, updated_at, hash_before_live)::text, 0)) from catalog.skus),
    (select sum(hashtextextended(row(sku, lane, reason, live, due_at <= now(), generation)::text, 0)) from catalog_internal.due))) as digest`;

/** The database of that name on the same server. */
export function urlOf(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/**
 * Fills a migrated database as a mirror stands in the middle of its work: the split lines of a manifest as its SKUs,
 * all priced half a day ago, and their next refreshes later.
 */
export async function standOn(url: string, split: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(CREATE_STAGING);
    await pipeline(createReadStream(split), client.query(copyFrom(COPY_STAGING)));
    await client.query(`
      insert into catalog.skus (sku, state, price_source, hash, sizes, in_manifest, updated_at, priced_at, asked_at, first_priced_at)
      select sku, 'priced', price_source, hash, sizes, true, updated_at, at, at, at
      from staging, (select now() - interval '12 hours' as at) a order by sku`);
    await client.query(`
      insert into catalog_internal.due (sku, lane, reason, live, due_at, generation)
      select sku, catalog_internal.lane_of(case when live then 'live' else 'sweep' end), case when live then 'live' else 'sweep' end,
        live, now() + make_interval(secs => 36000 + (hashtext(sku) & 16383)), 1
      from (select sku, price_source = 'live' as live from catalog.skus) s order by sku`);
    await client.query(
      `update catalog_internal.sync set snapshot_id = 'former', manifest_applied_at = now() - interval '7 days'`,
    );
    await client.query('vacuum (analyze, freeze) catalog.skus, catalog_internal.due');
  } finally {
    await client.end();
  }
}

/**
 * Runs `work` on a fresh copy of the database `template`, to the page the same each time, and drops it. Returns what
 * `work` returned, and what it wrote.
 */
export async function onCopy<T>(
  admin: Sql,
  serverUrl: string,
  template: string,
  work: (url: string) => Promise<T>,
): Promise<Written & { readonly result: T }> {
  // Page by page, with a checkpoint before and after: the template's pages are not logged again as the copy's first
  // ones.
  await admin.unsafe(`create database work template ${template} strategy file_copy`);
  try {
    const url = urlOf(serverUrl, 'work');
    const [before] = await admin<[{ at: string }]>`select pg_current_wal_insert_lsn() as at`;
    const result = await work(url);
    const [wal] = await admin<[{ bytes: number }]>`
      select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), ${before.at}::pg_lsn)::float8 as bytes`;
    const sql = connect(url, { max: 1 });
    try {
      const [row] = await sql.unsafe<[{ dead: number; digest: string }]>(`
        select digest, (select sum(n_dead_tup) from pg_stat_user_tables
          where schemaname like 'catalog%' and relname not in ('sync', 'tasks'))::int as dead from (${STATE}) s`);
      return { result, walBytes: wal.bytes, deadTuples: row.dead, digest: row.digest };
    } finally {
      await sql.end({ timeout: 5 });
    }
  } finally {
    await admin.unsafe('drop database work with (force)');
  }
}
