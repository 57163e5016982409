import { connect, type Sql } from '../../src/store/connection/db.ts';
import { median, timed } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { loadRecords } from '../frame/records.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { besideWriter } from '../read/beside.ts';
import { loadMirror } from '../scrape/load.ts';

/*
 * npm run bench:follow [-- --skus 100000 --rounds 20 --json FILE] Changes a second that a follower gets out of the
 * database in batches of 10,000, while another process applies as many answers as the partner gives an account: from
 * catalog.changes, of prices and of SKUs that appear, and by what one would write instead, in turns. The others miss
 * changes (times overlap), hold back WAL for who is away, or lose what comes while nobody listens.
 */

const { skus, rounds, json } = sizes({ skus: 100_000, rounds: 20 });
const BATCH = 10_000;
const ANSWERS_A_MINUTE = 200;
const SIZES = 14;
const SETTINGS = { shared_buffers: '1GB', max_wal_size: '8GB', wal_level: 'logical' };

/** As many moves as all rounds read, and SKUs that appeared, in batches as manifests leave them. */
async function loadChanges(sql: Sql): Promise<void> {
  const changes = (rounds + 2) * BATCH;
  await sql`
    select count(catalog_internal.add_changes('sku', skus, null, null, '{state,price_source,in_manifest}', array[null, null, null], '{pending,snapshot,true}', now()))
    from (
      select array_agg('SKU-' || lpad(n::text, 9, '0') order by n) as skus from generate_series(1, ${Math.ceil(changes / 3)}) n group by n / 1000
    ) s`;
  await sql`select catalog_internal.add_history_chunks(ahead => true)`;
  // In transactions as large as a batch: what decodes the log reads whole ones.
  for (let n = 0; n < changes; n += BATCH)
    await sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      select 'SKU-' || lpad((1 + (n::bigint * 7368787) % ${skus})::text, 9, '0'), '42', n, n + 1, now() - interval '1 day' + make_interval(secs => n / 100.0)
      from generate_series(${n + 1}::int, ${n + BATCH}::int) as n`;
  await sql.unsafe('vacuum analyze catalog.price_history, catalog_internal.change_batches');
}

/** Reads the next batch, and returns how many changes it had. */
type Read = () => Promise<number>;

/** In the server alone: `from` is moved on. */
function counting(sql: Sql, from: string): Read {
  let position = from;
  return async () => {
    const [{ count, last }] = await sql<[{ count: number; last: string | null }]>`
      select count(*)::int as count, max(position)::text as last from catalog.changes(${position}, ${BATCH})`;
    position = last ?? position;
    return count;
  };
}

/** All columns of each, by a client. */
function receiving(sql: Sql, from: string): Read {
  let position = from;
  return async () => {
    const rows = await sql<{ position: string }[]>`select * from catalog.changes(${position}, ${BATCH})`;
    position = rows.at(-1)?.position ?? position;
    return rows.length;
  };
}

function polling(sql: Sql): Read {
  let at = new Date(0);
  return async () => {
    const rows = await sql<{ observed_at: Date }[]>`
      select * from catalog.price_history where observed_at > ${at} order by observed_at limit ${BATCH}`;
    at = rows.at(-1)?.observed_at ?? at;
    return rows.length;
  };
}

/** Logical decoding of the moves that were loaded, by a slot that was made before. */
const decoding =
  (sql: Sql): Read =>
  async () => {
    const rows = await sql`
      select lsn, data from pg_logical_slot_get_binary_changes('follower', null, ${BATCH}, 'proto_version', '1', 'publication_names', 'moves')`;
    return rows.length;
  };

/** Payloads of notifications, from the commit until the last has come. */
async function listening(
  url: string,
  sql: Sql,
): Promise<{ readonly read: Read; readonly end: () => Promise<void> }> {
  const client = connect(url, { max: 1 });
  let heard = 0;
  let all = Promise.withResolvers<void>();
  await client.listen('moves', () => {
    heard += 1;
    if (heard === BATCH) all.resolve();
  });
  return {
    read: async () => {
      heard = 0;
      all = Promise.withResolvers<void>();
      await sql`
        select pg_notify('moves', json_build_object('sku', sku, 'size', size, 'old', old_price, 'new', new_price, 'id', id)::text)
        from catalog.price_history order by id limit ${BATCH}`;
      await all.promise;
      return heard;
    },
    end: () => client.end({ timeout: 5 }),
  };
}

await withMirrorDatabase(
  async ({ sql, url }) => {
    await loadMirror(sql, skus);
    await loadRecords(sql, SIZES);
    await sql`create publication moves for table catalog.price_history with (publish_via_partition_root)`;
    await sql`select pg_create_logical_replication_slot('follower', 'pgoutput')`;
    const [{ oldest }] = await sql<[{ oldest: string }]>`select catalog.changes_position()::text as oldest`;
    await loadChanges(sql);
    const [{ moves }] = await sql<[{ moves: string }]>`
      select (catalog_internal.position_of(min(id)) - 1)::text as moves from catalog.price_history`;
    const notified = await listening(url, sql);
    const reads: Readonly<Record<string, Read>> = {
      'catalog.changes, SKUs that appear': counting(sql, oldest),
      'catalog.changes': counting(sql, moves),
      'catalog.changes, to a client': receiving(sql, moves),
      'polling by observed_at': polling(sql),
      'logical decoding, pgoutput': decoding(sql),
      'LISTEN with payloads': notified.read,
    };
    const rates = new Map(Object.keys(reads).map((name): [string, number[]] => [name, []]));
    await besideWriter({ url, skus, aMinute: ANSWERS_A_MINUTE }, async () => {
      for (let round = 0; round <= rounds; round += 1)
        for (const [name, read] of Object.entries(reads)) {
          let count = 0;
          const ms = await timed(async () => (count = await read()));
          if (round > 0 && count > 0) rates.get(name)?.push((count / ms) * 1000);
        }
    });
    await notified.end();
    const rate = (name: string) => median(rates.get(name) ?? []);
    const ours = (name: string, other?: string): Row => ({
      work: name,
      ours: rate(name),
      unit: 'changes/s',
      ...(other === undefined
        ? { reach: { is: '≥', limit: 200_000 } }
        : { against: { what: other, value: rate(other) } }),
    });
    const client = 'catalog.changes, to a client';
    report(
      [
        ours('catalog.changes'),
        ours('catalog.changes, SKUs that appear'),
        ours(client, 'polling by observed_at'),
        ours(client, 'logical decoding, pgoutput'),
        ours(client, 'LISTEN with payloads'),
      ],
      json,
    );
  },
  { settings: SETTINGS },
);
