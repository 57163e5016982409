import { followInto } from 'catalog-mirror/follow';
import postgres from 'postgres';

const sql = postgres(process.env['DATABASE_URL'] ?? '');
await sql`create table if not exists drops (sku text, size text, old_price integer, new_price integer)`;
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
await followInto({
  sql,
  table: 'follower',
  position: 'now',
  signal: stop.signal,
  async apply(tx, { changes }) {
    for (const { kind, sku, size, old_price, new_price, meaning_changed } of changes)
      if (
        kind === 'price' &&
        old_price !== null &&
        new_price !== null &&
        new_price < old_price &&
        !meaning_changed
      )
        await tx`insert into drops values (${sku}, ${size}, ${old_price}, ${new_price})`;
  },
});
await sql.end();
