-- Reads first and judges afterwards. Once it has read, nothing can be dropped until the transaction ends; what was
-- dropped before is known from a sequence, whose value is the same in every snapshot. Planned for each position,
-- because one plan for all positions opens and locks every partition, including those that everybody has read.
CREATE OR REPLACE FUNCTION catalog.changes(after bigint, most integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
  first bigint;
  start bigint;
  until bigint;
  bound bigint;
  ending bigint;
  here bigint;
  found integer;
  left_over integer := most;
  oldest bigint;
  drawn bigint;
  resumed bigint;
BEGIN
  IF after IS NULL OR most IS NULL OR most < 1 THEN
    RAISE EXCEPTION 'catalog.changes needs a position and a number of changes from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  first := catalog_internal.id_before(after);
  start := first;
  -- Up to here there are as many as are asked for, in one of the tables alone. A batch is read whole, so no more of them than that are.
  SELECT least(
    (SELECT h.id FROM catalog.price_history h WHERE h.id > start ORDER BY h.id OFFSET most - 1 LIMIT 1),
    (SELECT h.id FROM catalog.product_history h WHERE h.id > start ORDER BY h.id OFFSET most - 1 LIMIT 1),
    (SELECT min(b.last_id) FROM (
       SELECT b.last_id, sum(b.last_id - greatest(b.id - 1, start)) OVER (ORDER BY b.last_id) AS changes
       FROM catalog_internal.change_batches b WHERE b.last_id > start ORDER BY b.last_id LIMIT most
     ) b WHERE b.changes >= most)) INTO until;
  -- Usually one: ids with one distance to their positions.
  FOR bound, here IN
    SELECT coalesce(lead(s.first_id) OVER (ORDER BY s.first_id), 9223372036854775807) - 1, s.shift
    FROM (SELECT 0::bigint AS first_id, 0::bigint AS shift UNION ALL SELECT s.first_id, s.shift FROM catalog_internal.position_shifts s) s ORDER BY s.first_id
  LOOP
    CONTINUE WHEN bound <= start;
    -- Batches do not overlap: the last that is read is the first to end there or later. By this its end has two bounds, and
    -- an index finds them; by the end of one and the beginning of another all before or all behind would be read.
    SELECT min(b.last_id) INTO ending FROM catalog_internal.change_batches b WHERE b.last_id >= least(until, bound);
    RETURN QUERY
      SELECT a.id + here, a.kind, a.sku, a.size, a.old_price, a.new_price, a.field, a.old_value, a.new_value, a.meaning_changed, a.observed_at FROM (
        SELECT h.id, 'price', h.sku, h.size, h.old_price, h.new_price, NULL::text, NULL::text, NULL::text, h.size_type_changed, h.observed_at
        FROM catalog.price_history h WHERE h.id > start AND h.id <= least(until, bound)
        UNION ALL
        SELECT h.id, 'product', h.sku, NULL, NULL, NULL, h.field, h.old_value, h.new_value,
          h.field = 'size_map_size_type' AND h.old_value IS NOT NULL, h.observed_at
        FROM catalog.product_history h WHERE h.id > start AND h.id <= least(until, bound)
        UNION ALL
        SELECT b.id + (s.n - 1) * cardinality(b.fields) + f.n - 1, 'sku', s.sku, NULL, NULL, NULL, f.field, f.old_value, f.new_value, false, b.observed_at
        FROM catalog_internal.change_batches b
        CROSS JOIN LATERAL unnest(b.skus) WITH ORDINALITY AS s(sku, n)
        CROSS JOIN LATERAL unnest(b.fields, b.old_values, b.new_values) WITH ORDINALITY AS f(field, old_value, new_value, n)
        WHERE b.kind = 'sku' AND b.last_id > start AND b.last_id <= coalesce(ending, 9223372036854775807) AND b.id <= least(until, bound)
        UNION ALL
        SELECT b.id + e.n - 1, b.kind, e.sku, e.size, NULL, e.price, e.field, NULL, e.new_value, false, b.observed_at
        FROM catalog_internal.change_batches b
        CROSS JOIN LATERAL unnest(b.skus, b.sizes, b.prices, b.fields, b.new_values) WITH ORDINALITY AS e(sku, size, price, field, new_value, n)
        WHERE b.kind <> 'sku' AND b.last_id > start AND b.last_id <= coalesce(ending, 9223372036854775807) AND b.id <= least(until, bound)
      ) a(id, kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed, observed_at)
      WHERE a.id > start ORDER BY a.id LIMIT left_over;
    GET DIAGNOSTICS found = ROW_COUNT;
    left_over := left_over - found;
    EXIT WHEN left_over <= 0 OR until <= bound;
    start := bound;
  END LOOP;
  oldest := catalog_internal.position_of(catalog_internal.dropped_to(first));
  -- The end of a gap is given out before a position behind it is drawn (changes_position).
  SELECT greatest(catalog_internal.position_of(last_value), (SELECT max(resumed_at) FROM catalog_internal.position_gaps))
  INTO drawn FROM catalog_internal.change_positions;
  SELECT resumed_at INTO resumed FROM catalog_internal.position_gaps WHERE forked_at < after AND after < resumed_at;
  IF after < oldest THEN
    RAISE EXCEPTION 'the changes after position % are no longer kept: the oldest position to go on from is %', after, oldest
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF after > drawn AND pg_is_in_recovery() THEN
    RAISE EXCEPTION 'position % is not here yet: the newest that this standby has received is %', after, drawn
      USING ERRCODE = 'serialization_failure', HINT = 'Try again once the standby has come so far, or ask the primary.';
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF resumed IS NOT NULL THEN
    RAISE EXCEPTION 'position % is of another history: this database was restored from a state before it, or its server was replaced', after
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  END IF;
  PERFORM catalog_internal.refuse_written_anew('{catalog.price_history,catalog.product_history,catalog_internal.change_batches}');
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

COMMENT ON FUNCTION catalog.changes(bigint, integer) IS 'All changes of the mirror after a position, in the order of their commits, at most so many: of prices, products and SKUs. Remember the last position. Fails with SQLSTATE CM001 where changes after the position are no longer kept, or the position is none of this database.';
