import { faultsOf, type Mutant } from './mutant.ts';

const MOMENT = 'drizzle/0068_moment_of_a_query.sql';

/**
 * Faults in the moment at which a query judges, in what may depend on the history, in what a snapshot does not see
 * of it, and in receivers' clocks.
 */
export const MOMENTS: readonly Mutant[] = [
  ...faultsOf(
    MOMENT,
    ['test/store/old-transaction.pg.test.ts'],
    ['moment: that of the message', 'RETURN clock_timestamp();', 'RETURN statement_timestamp();'],
    [
      'moment: volatile, so that nothing is looked up through a CTE',
      'RETURNS timestamptz\nLANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path',
      'RETURNS timestamptz\nLANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path',
    ],
    [
      'trust: judged by what is volatile, so that nothing is looked up through a CTE',
      'trust_now((SELECT catalog_internal.moment())) t',
      'trust_now((SELECT clock_timestamp())) t',
    ],
    [
      'sync_status: due is what is due when the message began',
      'count(*) FILTER (WHERE due_at <= (SELECT moment FROM m) AND',
      'count(*) FILTER (WHERE due_at <= statement_timestamp() AND',
    ],
  ),
  ...faultsOf(
    MOMENT,
    ['test/store/history-by-hand.pg.test.ts'],
    [
      'changes_position: also of a snapshot from before the history was emptied',
      'IF catalog_internal.history_was_taken() THEN',
      'IF false THEN',
    ],
    [
      'history_was_taken: not where a chunk is detached',
      'IS DISTINCT FROM c.relfilenode OR pg_partition_root(c.oid) IS DISTINCT FROM inhparent::regclass)',
      'IS DISTINCT FROM c.relfilenode)',
    ],
    [
      'history_was_taken: not where a chunk is emptied',
      '(pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode OR pg_partition_root(c.oid)',
      '(pg_partition_root(c.oid)',
    ],
    [
      'history_was_taken: not where what is beside the prices is emptied',
      "'catalog_internal.change_batches'::regclass)\n      AND pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode",
      "'catalog_internal.change_batches'::regclass)\n      AND false",
    ],
  ),
  ...faultsOf(
    MOMENT,
    ['test/store/history-by-hand.pg.test.ts'],
    [
      'changes: a table that was rewritten meanwhile is empty',
      "  PERFORM catalog_internal.refuse_written_anew('{catalog.price_history,catalog.product_history,catalog_internal.change_batches}');\n",
      '',
    ],
    ['refuse_written_anew: not of partitions', 'WHERE inhparent = ANY (tables)', 'WHERE false'],
    [
      'changes_snapshot: a table that was rewritten meanwhile is empty',
      "  PERFORM catalog_internal.refuse_written_anew('{catalog.skus,catalog.products,catalog.prices}');\n",
      '',
    ],
    [
      'history_is_emptied: one chunk takes all positions',
      'greatest(least(ends, drawn.last_value), dropped.last_value)',
      'greatest(drawn.last_value, dropped.last_value)',
    ],
    [
      'history_is_emptied: also of what is detached',
      "IF pg_partition_root(TG_RELID) IS DISTINCT FROM 'catalog.price_history'::regclass THEN\n      RETURN",
      'IF false THEN\n      RETURN',
    ],
    [
      'add_history_chunks: emptied as a replica does, nobody notices',
      "      EXECUTE format('ALTER TABLE catalog_internal.%I ENABLE ALWAYS TRIGGER history_is_emptied', called);\n",
      '',
    ],
  ),
  ...faultsOf(
    MOMENT,
    ['test/migrations/roles.pg.test.ts'],
    ["rights: what views call may be nobody's", "proname IN ('believable_until'", "proname IN ('mark_due'"],
  ),
  ...faultsOf(
    MOMENT,
    ['test/store/failover.pg.test.ts'],
    [
      'changes: a standby that is behind is another history',
      'ELSIF after > drawn AND pg_is_in_recovery() THEN',
      'ELSIF false THEN',
    ],
  ),
  ...faultsOf(
    MOMENT,
    ['test/store/history-of-sellers.pg.test.ts'],
    [
      'drop_history_chunk: a chunk on which a foreign key is stays',
      "  EXECUTE format('ALTER TABLE catalog.price_history DETACH PARTITION %s', chunk.name);\n",
      '',
    ],
    [
      'drop_history_chunk: what refers to a chunk is an error',
      'WHEN foreign_key_violation OR dependent_objects_still_exist THEN',
      'WHEN division_by_zero THEN',
    ],
    [
      'drop_history_chunk: what refers to a chunk is found under the lock alone',
      'said := catalog_internal.refers_to_history(chunk.name, chunk.ends);',
      'said := NULL;',
    ],
    ["drop_history_chunk: a seller's policy hides what refers to a chunk", ' SET row_security = off', ''],
    [
      'refers_to_history: what the daemon may not read is an error',
      'EXCEPTION WHEN insufficient_privilege THEN\n      RETURN',
      'EXCEPTION WHEN division_by_zero THEN\n      RETURN',
    ],
    [
      'refers_to_history: a key that is null in part refers to a row',
      'num_nulls(%5$s) = 0',
      'num_nulls(%5$s) >= 0',
    ],
    [
      'refers_to_history: not from a partitioned table',
      "CASE t.relkind WHEN 'p' THEN '' ELSE 'ONLY' END",
      "'ONLY'",
    ],
    ['add_history_chunks: without checks', ' INCLUDING CONSTRAINTS', ''],
    ['add_history_chunks: without generated columns', ' INCLUDING GENERATED', ''],
  ),
  ...faultsOf(
    'src/store/history/retention.ts',
    ['test/store/history-of-sellers.pg.test.ts'],
    [
      'history retention: what is referred to is tried each minute',
      "if (outcome === 'referred to') rest.untilMs = nowMs + REFERRED_REST_MS;",
      '',
    ],
    ['history retention: never again once it was referred to', 'nowMs < rest.untilMs', 'rest.untilMs > 0'],
  ),
  ...faultsOf(
    MOMENT,
    ['test/migrations/sellers.pg.test.ts'],
    [
      'migration: locks the watchlist for triggers that stay as they are',
      'REVOKE ALL ON FUNCTION catalog_internal.warn_of_promises() FROM PUBLIC;',
      'ALTER TABLE catalog.watchlist ENABLE ALWAYS TRIGGER warn_of_promises;',
    ],
  ),
  ...faultsOf(
    'drizzle/0075_cost_of_many.sql',
    ['test/store/refresh-sessions.pg.test.ts'],
    [
      'warn_of_promises: serializable sellers make each other fail',
      "apart CONSTANT boolean := current_setting('transaction_isolation') = 'serializable'",
      'apart CONSTANT boolean := false',
    ],
    [
      "warn_of_promises: a serializable seller's own promise does not count",
      'FROM becomes WHERE apart',
      'FROM becomes WHERE false',
    ],
  ),
  ...faultsOf(
    'src/follow/delivery.ts',
    ['test/follow/delivery.test.ts'],
    [
      'followers: a wrong clock makes dead letters',
      '(aheadMs === null || status === TOO_LARGE)',
      '(aheadMs !== 0 || status === TOO_LARGE)',
    ],
    [
      'followers: a wrong clock keeps batches large',
      '(aheadMs === null || status === TOO_LARGE)',
      'aheadMs === null',
    ],
    [
      'followers: an answer of a cache tells the time',
      "Date.parse(date ?? '') + sinceMs",
      "Date.parse(date ?? '')",
    ],
    ['followers: a clock is wrong one way only', 'if (told < sentAt - CLOCK_OFF_MS)', 'if (told < 0)'],
    [
      'followers: a receiver that takes its time has a wrong clock',
      'return told > now + CLOCK_OFF_MS ?',
      'return told > sentAt + CLOCK_OFF_MS ?',
    ],
    [
      'followers: who takes what is five minutes off goes by no clock',
      'const ANY_TIME_MS = 600_000;',
      'const ANY_TIME_MS = 240_000;',
    ],
  ),
  ...faultsOf(
    'src/follow/webhook.ts',
    ['test/follow/webhook.test.ts'],
    [
      'followers: a Date that is always wrong holds a follower up',
      'isAnyTimeTaken ? null : aheadMs',
      'aheadMs',
    ],
    [
      'followers: who refuses with a wrong clock goes by none',
      "judgeStatus(answer.statusCode, null) === 'delivered' && takesAnyTime",
      'takesAnyTime',
    ],
    ['followers: nobody is told that a clock is to blame', '...(isByClock && { isByClock }),', ''],
  ),
  ...faultsOf(
    'src/follow/follower.ts',
    ['test/follow/batches.pg.test.ts'],
    [
      'followers: a clock that is never put right holds a follower up',
      'judgeByClock(said, begun - (byClockFrom ?? begun))',
      'judgeByClock(said, 0)',
    ],
  ),
  ...faultsOf(
    'drizzle/0081_pace_view.sql',
    ['test/store/old-transaction.pg.test.ts'],
    [
      'others_sent: nobody writes down what a parallel plan reads',
      'LANGUAGE sql STABLE PARALLEL UNSAFE',
      'LANGUAGE sql VOLATILE PARALLEL UNSAFE',
    ],
  ),
  ...faultsOf(
    'drizzle/0081_pace_view.sql',
    ['test/store/history-locks.pg.test.ts'],
    [
      'changes_after: one plan for all positions',
      'changes_after(after bigint, most integer) RETURNS integer\nLANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$',
      'changes_after(after bigint, most integer) RETURNS integer\nLANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$',
    ],
  ),
];
