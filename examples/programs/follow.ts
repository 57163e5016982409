import { type Batch, followInto } from 'catalog-mirror/follow';
import postgres, { type TransactionSql } from 'postgres';

const sql = postgres(process.env['DATABASE_URL'] ?? '');
await sql`create table if not exists drops (sku text, size text, old_price integer, new_price integer)`;
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
await followInto({ sql, table: 'follower', position: 'now', signal: stop.signal, apply });
await sql.end();

async function apply(tx: TransactionSql, { changes }: Batch) {
  for (const { sku, size, old_price, new_price, meaning_changed } of changes)
    if (!meaning_changed && (old_price ?? 0) > (new_price ?? Infinity))
      await tx`insert into drops values (${sku}, ${size}, ${old_price}, ${new_price})`;
}
