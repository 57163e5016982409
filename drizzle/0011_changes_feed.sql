-- The newest position a reader has to start from to get what is committed from now on. Of what this snapshot sees, not of
-- what was drawn: what is being committed right now comes after it.
CREATE FUNCTION catalog.changes_position() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT greatest(
    (SELECT id FROM catalog.price_history ORDER BY id DESC LIMIT 1),
    (SELECT id FROM catalog.product_history ORDER BY id DESC LIMIT 1),
    (SELECT last_value FROM catalog_internal.dropped_positions))
$$;
--> statement-breakpoint
CREATE FUNCTION catalog.changes_oldest() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT last_value FROM catalog_internal.dropped_positions
$$;
--> statement-breakpoint

-- One position may stand for two rows of before the upgrade (one of each history, which counted by themselves): they always
-- come together. Read first, and judged then: from the reading on nothing can be dropped until the transaction ends, and
-- what was dropped before is said by a sequence, which is the same in every snapshot.
CREATE FUNCTION catalog.changes(after bigint, most integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  oldest bigint;
  drawn bigint;
BEGIN
  IF after IS NULL OR most IS NULL OR most < 1 THEN
    RAISE EXCEPTION 'catalog.changes needs a position and a number of changes from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY
    SELECT * FROM (SELECT * FROM (
      (SELECT h.id, 'price', h.sku, h.size, h.old_price, h.new_price, NULL::text, NULL::text, NULL::text, h.size_type_changed, h.observed_at
       FROM catalog.price_history h WHERE h.id > changes.after ORDER BY h.id LIMIT changes.most)
      UNION ALL
      (SELECT h.id, 'product', h.sku, NULL, NULL, NULL, h.field, h.old_value, h.new_value, h.field = 'size_map_size_type', h.observed_at
       FROM catalog.product_history h WHERE h.id > changes.after ORDER BY h.id LIMIT changes.most)
    ) all_kinds ORDER BY 1 FETCH FIRST changes.most ROWS WITH TIES) c ORDER BY 1, 2 DESC;
  SELECT last_value INTO oldest FROM catalog_internal.dropped_positions;
  SELECT last_value INTO drawn FROM catalog_internal.change_positions;
  IF after < oldest THEN
    RAISE EXCEPTION 'the changes after position % are no longer kept: the oldest position to go on from is %', after, oldest
      USING ERRCODE = 'CM001', HINT = 'Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  END IF;
END
$$;
--> statement-breakpoint

-- Drops the oldest chunk of price_history where all of it is older than so many seconds, never the one that is written.
-- One a transaction: the last position is not taken back when the rest is. 'in use': somebody reads it at the moment, another
-- time then; who waits for the lock lets nobody else read, so not for long.
CREATE FUNCTION catalog_internal.drop_history_chunk(kept_seconds double precision) RETURNS text
LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
DECLARE
  chunk record;
  is_old text;
  old boolean;
BEGIN
  SELECT inhrelid::regclass AS name, substring(pg_get_expr(relpartbound, oid) FROM $re$ TO \('?(\d+)'?\)$re$)::bigint AS ends
    INTO chunk
    FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'catalog.price_history'::regclass
    ORDER BY ends LIMIT 1;
  IF chunk.ends > (SELECT last_value FROM catalog_internal.change_positions) THEN
    RETURN 'nothing old';
  END IF;
  is_old := format('SELECT NOT EXISTS (SELECT FROM %s WHERE observed_at >= now() - make_interval(secs => $1))', chunk.name);
  EXECUTE is_old INTO old USING kept_seconds;
  IF old THEN
    LOCK TABLE ONLY catalog.price_history IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', chunk.name);
    -- Again: who was writing at the first look is done by now.
    EXECUTE is_old INTO old USING kept_seconds;
  END IF;
  IF NOT old THEN
    RETURN 'nothing old';
  END IF;
  EXECUTE format('DROP TABLE %s', chunk.name);
  PERFORM setval('catalog_internal.dropped_positions', chunk.ends - 1);
  RETURN 'dropped';
EXCEPTION WHEN lock_not_available OR undefined_table THEN
  RETURN 'in use';
END
$$;
--> statement-breakpoint
-- What was observed since a moment has a greater position than this: who asks for the moves of a SKU since then leaves all
-- older chunks alone. An hour for a clock that was set back.
CREATE FUNCTION catalog_internal.position_before(moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(max(position), -1) FROM catalog_internal.history_milestones WHERE at < moment - interval '1 hour'
$$;
--> statement-breakpoint
-- Of sync.built_after. Without an argument, so that Postgres can ask it before it opens a single chunk.
CREATE FUNCTION catalog_internal.position_before_built() RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT catalog_internal.position_before(built_after) FROM catalog_internal.sync
$$;
--> statement-breakpoint
-- As before (0005), in the chunks of three days.
CREATE OR REPLACE FUNCTION catalog_internal.past_moves(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE sql STABLE AS $$
  SELECT count(DISTINCT h.observed_at)::integer,
         CASE WHEN first_priced_at IS NULL THEN 0
           ELSE extract(epoch FROM least(now() - first_priced_at, interval '3 days')) / 60
         END
  FROM catalog.price_history h
  WHERE h.sku = of_sku AND h.observed_at > now() - interval '3 days'
    AND h.id > catalog_internal.position_before(now() - interval '3 days')
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog.changes_position(), catalog.changes_oldest(), catalog.changes(bigint, integer),
  catalog_internal.drop_history_chunk(double precision), catalog_internal.position_before(timestamptz),
  catalog_internal.position_before_built() FROM PUBLIC;
--> statement-breakpoint
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_position(), catalog.changes_oldest(), catalog.changes(bigint, integer) TO catalog_reader;
  END IF;
END
$$;
--> statement-breakpoint
COMMENT ON FUNCTION catalog.changes(bigint, integer) IS 'Price and product changes after a position, in the order of their commits, at most so many (one more where two of before the upgrade share a position). Remember the last position. Fails with SQLSTATE CM001 where changes after the position are no longer kept, or the position is none of this database.';
--> statement-breakpoint
COMMENT ON FUNCTION catalog.changes_position() IS 'The position to follow changes from now on from. Take it before you read the tables.';
--> statement-breakpoint
COMMENT ON FUNCTION catalog.changes_oldest() IS 'The oldest position that catalog.changes takes.';
