import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { LEARNING, NEXT, prepare, scattered, SKUS_AN_ANSWER } from '../apply/answer.ts';
import { sizes } from '../frame/options.ts';
import { loadRecords } from '../frame/records.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { seeded } from '../freshness/random.ts';
import { loadMirror } from '../scrape/load.ts';

/*
 * npm run bench:bloat [-- --skus 50000 --rounds 7 --json FILE] A week of refreshes in a row: every SKU once a round,
 * a hundredth of the prices changed. Autovacuum with the tables' own settings, woken every second, as a round is here
 * over in less than a minute. How much larger each table is with its indexes after the last round than after the
 * first.
 */

const { skus, rounds, json } = sizes({ skus: 50_000, rounds: 7 });
const TABLES = ['catalog.skus', 'catalog.prices', 'catalog.products', 'catalog_internal.due'];
const REACH = 1.3;

async function bytesOf(sql: Sql): Promise<Map<string, number>> {
  const rows = await sql<{ name: string; bytes: number }[]>`
    select name, pg_total_relation_size(name::regclass)::float8 as bytes from unnest(${TABLES}::text[]) as name`;
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

async function hotShare(sql: Sql): Promise<number> {
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<[{ share: number }]>`
    select 100 * n_tup_hot_upd / n_tup_upd::float8 as share from pg_stat_user_tables
    where schemaname = 'catalog' and relname = 'skus'`;
  return row.share;
}

await withMirrorDatabase(
  async ({ sql }) => {
    await loadMirror(sql, skus);
    await loadRecords(sql, 14);
    const names = scattered(skus);
    const random = seeded(3);
    const round = async () => {
      for (let done = 0; done < skus; done += SKUS_AN_ANSWER) {
        const some = Array.from({ length: SKUS_AN_ANSWER }, () => names.next().value);
        const { claim, records } = await prepare(sql, some, 0.01, random);
        await applyAnswer(sql, claim, records, NEXT, { learning: LEARNING });
      }
    };
    await round();
    const first = await bytesOf(sql);
    for (let n = 1; n < rounds; n += 1) await round();
    const last = await bytesOf(sql);
    const rows = TABLES.map((table): Row => ({
      work: `${table} after ${rounds} rounds`,
      ours: (last.get(table) ?? 0) / 2 ** 20,
      unit: 'MB',
      against: { what: 'after the first', value: (first.get(table) ?? 0) / 2 ** 20 },
      reach: { is: '≤', limit: REACH },
    }));
    const hot: Row = {
      work: 'HOT updates of skus',
      ours: await hotShare(sql),
      unit: '%',
      reach: { is: '≥', limit: 95 },
    };
    report([...rows, hot], json);
  },
  { settings: { autovacuum_naptime: '1s', shared_buffers: '1GB', max_wal_size: '8GB' } },
);
