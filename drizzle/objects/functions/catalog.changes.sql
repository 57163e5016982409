-- Reads first and judges then: from the reading on nothing can be dropped until the transaction ends, and what was
-- dropped before is said by a sequence, which is the same in every snapshot.
CREATE OR REPLACE FUNCTION catalog.changes(after bigint, most integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  oldest bigint;
  drawn bigint;
  resumed bigint;
BEGIN
  IF after IS NULL OR most IS NULL OR most < 1 THEN
    RAISE EXCEPTION 'catalog.changes needs a position and a number of changes from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY
    SELECT * FROM (
      (SELECT h.id, 'price', h.sku, h.size, h.old_price, h.new_price, NULL::text, NULL::text, NULL::text, h.size_type_changed, h.observed_at
       FROM catalog.price_history h WHERE h.id > changes.after ORDER BY h.id LIMIT changes.most)
      UNION ALL
      (SELECT h.id, 'product', h.sku, NULL, NULL, NULL, h.field, h.old_value, h.new_value,
              h.field = 'size_map_size_type' AND h.old_value IS NOT NULL, h.observed_at
       FROM catalog.product_history h WHERE h.id > changes.after ORDER BY h.id LIMIT changes.most)
    ) all_kinds ORDER BY 1 LIMIT changes.most;
  SELECT last_value INTO oldest FROM catalog_internal.dropped_positions;
  SELECT last_value INTO drawn FROM catalog_internal.change_positions;
  SELECT resumed_at INTO resumed FROM catalog_internal.position_gaps WHERE forked_at < after AND after < resumed_at;
  IF after < oldest THEN
    RAISE EXCEPTION 'the changes after position % are no longer kept: the oldest position to go on from is %', after, oldest
      USING ERRCODE = 'CM001', HINT = 'Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  ELSIF resumed IS NOT NULL THEN
    RAISE EXCEPTION 'position % is of another history: this database was restored from a state before it, or its server was replaced', after
      USING ERRCODE = 'CM001', HINT = 'Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog.changes(bigint, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes(bigint, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes(bigint, integer) IS 'Price and product changes after a position, in the order of their commits, at most so many. Remember the last position. Fails with SQLSTATE CM001 where changes after the position are no longer kept, or the position is none of this database.';
