import type { Sql } from '../../src/store/connection/db.ts';

/** Resets the counts, as after a window without requests of other services or of sellers for a SKU. */
export async function forgetOthers(sql: Sql): Promise<void> {
  await sql`
    select setval(format('catalog_internal.refreshes_%s', of)::regclass, 1, false) from unnest(array['paid', 'asked', 'refused']) as of`;
  await sql`
    select setval(format('catalog_internal.others_sent_%s', i)::regclass, 1, false) from generate_series(0, 15) as i`;
}
