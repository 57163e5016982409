-- The position after which a reader gets everything that is committed from now on: that of the newest row this
-- snapshot sees, not the newest position drawn, because changes that are being committed right now come after it. If
-- the history holds less than was dropped, it is the newest dropped position; in a transaction whose snapshot is older
-- than the drop, which does not see the last rows, it is an error. It is never before the end of a gap
-- (follow_lineage), even while nothing has come after the gap, because the previous database may have issued any
-- position below.
CREATE OR REPLACE FUNCTION catalog.changes_position() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest bigint;
  oldest bigint;
  resumed bigint;
BEGIN
  newest := catalog_internal.position_of(greatest(
    (SELECT id FROM catalog.price_history ORDER BY id DESC LIMIT 1),
    (SELECT id FROM catalog.product_history ORDER BY id DESC LIMIT 1),
    (SELECT last_id FROM catalog_internal.change_batches ORDER BY last_id DESC LIMIT 1)));
  SELECT coalesce(max(resumed_at), 0) INTO resumed FROM catalog_internal.position_gaps;
  -- From the reading on nothing more can be emptied or dropped.
  oldest := catalog.changes_oldest();
  IF newest >= oldest THEN
    RETURN greatest(newest, resumed);
  END IF;
  IF catalog_internal.history_was_taken() THEN
    RAISE EXCEPTION 'the history of changes was emptied after this transaction began, which does not see what came before that'
      USING ERRCODE = 'CM001', HINT = 'Begin a new transaction.';
  END IF;
  RETURN greatest(oldest, resumed);
END
$$;

REVOKE ALL ON FUNCTION catalog.changes_position() FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_position() TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_position() IS 'The position to follow changes from now on from. Take it before you read the tables.';
