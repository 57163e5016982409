import { followInto } from '../../src/client/follow.ts';

/*
 * A seller's program of its own: writes every change into a table beside the mirror, in the transaction that keeps
 * its position. It is killed and started again by follower-kill.e2e.test.ts.
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
