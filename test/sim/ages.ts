import { noteClock } from '../../src/store/clock.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { type Draw, pick } from './faults.ts';
import type { Rig } from './rig.ts';

/* Time far beyond what is kept: chunks of the history end, grow old and are dropped. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The size of the chunks of price_history (add_history_chunks). */
const CHUNK = 5_000_000;

/** SQL: restores the chunks with which a history began. */
export const CHUNKS = `
  create function sim.first_chunks(kept bigint, drawn bigint, dropped bigint) returns void language plpgsql as $$
  declare
    c text;
  begin
    for c in select inhrelid::regclass::text from pg_inherits where inhparent = 'catalog.price_history'::regclass loop
      execute format('drop table %s', c);
    end loop;
    perform setval('catalog_internal.change_positions', drawn), setval('catalog_internal.dropped_positions', greatest(dropped, 1), dropped > 0);
    for n in 0..kept - 1 loop
      execute format('create table catalog_internal.price_history_%s (like catalog.price_history including defaults)', n);
      execute format('alter table catalog.price_history attach partition catalog_internal.price_history_%s for values from (%s) to (%s)',
        n, n * ${CHUNK}, (n + 1) * ${CHUNK});
    end loop;
  end $$`;

/** Moves the next position to the next chunk, as after millions of changes. */
export async function endChunk(sql: Sql): Promise<void> {
  await sql`select catalog_internal.add_history_chunks(ahead => true)`;
  await sql`
    select setval('catalog_internal.change_positions', (last_value / ${CHUNK} + 1) * ${CHUNK}) from catalog_internal.change_positions`;
}

/** Lets so much time pass, watched by a daemon, that recent changes become older than what is kept. */
export async function growOld({ sql, time }: Rig, draw: Draw): Promise<void> {
  await time.pass(pick([26 * HOUR, 3 * DAY, 40 * DAY], draw));
  await noteClock(sql, { steady: false });
  for (let n = 0; n < 3; n += 1) {
    await time.pass(HOUR / 2);
    await noteClock(sql, { steady: true });
  }
}
