import { followInto } from '../../src/client/follow.ts';

/*
 * A seller's program: it writes every change into a table beside the mirror, in the transaction that stores its
 * position. follower-kill.e2e.test.ts kills and restarts it.
 */

await followInto({
  url: process.env['DATABASE_URL'] ?? '',
  table: 'shop.positions',
  batch: Number(process.env['BATCH'] ?? 100),
  apply: async (tx, { changes, isCopy }) => {
    await tx`
      insert into shop.changes (change, is_copy)
      select change, ${isCopy} from json_array_elements(${JSON.stringify(changes)}::text::json) with ordinality as c(change, n) order by n`;
  },
});
