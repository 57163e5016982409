import { faultsOf, type Mutant } from './mutant.ts';

const HISTORY_PLANS = 'drizzle/0080_history_plans.sql';

/** Faults that lose a change within its retention, keep one for ever, or report a lost one as kept. */
export const HISTORY: readonly Mutant[] = [
  ...faultsOf(
    'drizzle/0041_retention_by_all_changes.sql',
    ['test/store/history-chunks.pg.test.ts'],
    [
      'history: SKUs that appeared are dropped with a chunk without prices',
      'WHERE last_id < $2',
      'WHERE last_id < 0 * $2',
    ],
    ['history: metadata is dropped with a chunk without prices', 'WHERE id < $2', 'WHERE id < 0 * $2'],
    [
      'history: the newest of a chunk tells of all of it',
      'ORDER BY last_id DESC LIMIT 100',
      'ORDER BY last_id DESC LIMIT 1',
    ],
    [
      'history: a chunk is dropped while it is written',
      'IF chunk.ends > (SELECT last_value',
      'IF chunk.ends < (SELECT last_value',
    ],
    [
      'history: the oldest position is one too low',
      'greatest(chunk.ends - 1, d.last_value)',
      'greatest(chunk.ends - 2, d.last_value)',
    ],
  ),
  ...faultsOf(
    'drizzle/0065_history_chunks_by_hand.sql',
    ['test/store/history-by-hand.pg.test.ts'],
    [
      'history: what was given up is taken back by retention',
      'greatest(chunk.ends - 1, d.last_value)',
      'chunk.ends - 1',
    ],
    [
      'history: a chunk that is gone is not missed',
      "IS DISTINCT FROM 'catalog.price_history'::regclass",
      'IS NULL AND false',
    ],
    [
      'history: a chunk that is made anew was never there',
      'attached IS NULL AND chunk * 5000000 <= newest',
      'false',
    ],
    [
      'history: a chunk that was detached is not taken back',
      'CONTINUE WHEN attached;',
      'CONTINUE WHEN attached IS NOT NULL;',
    ],
    [
      'history: after a TRUNCATE that was taken back nothing is known',
      'WHERE m.position >= d.last_value',
      'WHERE m.position >= 0',
    ],
  ),
  ...faultsOf(
    'drizzle/0066_positions_of_new_mirrors.sql',
    ['test/store/lineage.pg.test.ts'],
    [
      'history: a new mirror has the positions of any other',
      'IF known.database IS NULL OR present',
      'IF present',
    ],
  ),
  ...faultsOf(
    'src/store/connection/sql-errors.ts',
    ['test/store/refusals.test.ts'],
    ['history: a chunk that is missing is the fault of the rows', '|| isRoomMissing(error)', ''],
  ),
  ...faultsOf(
    'drizzle/0067_history_is_emptied.sql',
    ['test/store/history-by-hand.pg.test.ts'],
    [
      'history: who empties it tells nobody',
      "PERFORM setval('catalog_internal.dropped_positions', greatest(drawn.last_value, dropped.last_value))",
      'PERFORM 1',
    ],
  ),
  ...faultsOf(
    'src/follow/webhook.ts',
    ['test/follow/batch.test.ts', 'test/follow/follower.pg.test.ts'],
    [
      'followers: an id is of two bodies',
      "${copy ? 'copy' : last}_${content}",
      '${copy ? `copy_${content}` : last}',
    ],
  ),
  ...faultsOf(
    'src/client/errors.ts',
    ['test/client/change.test.ts', 'test/client/follow.pg.test.ts'],
    ['programs: who may not wait for long fails', "new Set([LOCK_NOT_AVAILABLE, '57014'])", 'new Set([])'],
    [
      'programs: a timeout while the feed is read ends following',
      'return isWaitEnded(error)\n',
      'return false\n',
    ],
    ['programs: an idle session that was ended ends following', "'57P05',", ''],
  ),
  ...faultsOf(
    'drizzle/0074_begun_anew_after_a_restore.sql',
    ['test/store/lineage.pg.test.ts'],
    [
      'lineage: one begins before the end of a gap that nothing has come behind',
      'RETURN greatest(newest, resumed);',
      'RETURN newest;',
    ],
    [
      'lineage: the end of a gap is refused',
      '(SELECT max(resumed_at) FROM catalog_internal.position_gaps))\n  INTO drawn',
      'NULL)\n  INTO drawn',
    ],
  ),
  ...faultsOf(
    'drizzle/0074_begun_anew_after_a_restore.sql',
    ['test/store/changes-behind.pg.test.ts'],
    [
      'changes: all batches behind a reader are read with each of its readings',
      'WHERE b.last_id >= least(until, bound);',
      'WHERE false;',
    ],
  ),
  ...faultsOf(
    'drizzle/0074_begun_anew_after_a_restore.sql',
    ['test/migrations/roles.pg.test.ts'],
    ["roles: another's table stops a start", "      AND pg_has_role(relowner, 'USAGE')\n", ''],
    ["roles: another's function stops a start", " AND pg_has_role(proowner, 'USAGE')\n", '\n'],
    [
      "sequences: a seller's own are set, too",
      "OR oid IN ('catalog.price_history'::regclass, 'catalog.product_history'::regclass))",
      "OR relnamespace = 'catalog'::regnamespace)",
    ],
  ),
  ...faultsOf(
    HISTORY_PLANS,
    ['test/store/history-locks.pg.test.ts'],
    [
      'history: a reader at the end of the feed opens all of it',
      ' SET plan_cache_mode = force_custom_plan AS $$\n#variable_conflict use_column\nDECLARE\n  first bigint;',
      ' AS $$\n#variable_conflict use_column\nDECLARE\n  first bigint;',
    ],
    [
      'history: movers open all of it',
      'WHERE h.observed_at > since AND h.id > start\n',
      'WHERE h.observed_at > since\n',
    ],
    [
      'history: each move that nobody reports opens all of it',
      'AND h.observed_at >= built AND h.id > start AND',
      'AND h.observed_at >= built AND',
    ],
    [
      'history: each new live SKU opens all of it',
      'h.sku = of_sku AND h.observed_at > since AND h.id > start;',
      'h.sku = of_sku AND h.observed_at > since;',
    ],
    [
      'history: each answer opens all of it for prices that have vanished',
      'IF cardinality(gone) = 0 THEN',
      'IF gone IS NULL THEN',
    ],
    [
      'history: each answer opens all of it for sizes that are back',
      'LANGUAGE plpgsql STABLE STRICT ROWS 10 SET',
      'LANGUAGE plpgsql STABLE ROWS 10 SET',
    ],
  ),
  ...faultsOf(
    HISTORY_PLANS,
    ['test/store/explain.pg.test.ts'],
    [
      'explain: a correction of size_type is a move',
      ' AND NOT h.size_type_changed AND h.id > coalesce((',
      ' AND h.id > coalesce((',
    ],
    [
      'explain: the price before is one of another size',
      "WHERE c.sku = s.sku AND c.field = 'size_map_size_type' AND",
      "WHERE c.sku = s.sku AND c.field = '' AND",
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/postgres.ts',
    ['test/doctor/checks.test.ts'],
    ['doctor: locks are warned of once there are none left', '<= locksMost / 2', '<= locksMost'],
  ),
  ...faultsOf(
    'src/store/setup/migrations.ts',
    ['test/migrations/roles.pg.test.ts'],
    ['roles: a grant that is refused stops a start', '    notGranted = error;', '    throw error;'],
  ),
];
