-- Writes many changes in one row, and draws a position for each. Of kind 'sku': all SKUs have changed these fields
-- alike, from these old values to these new ones. Of the other kinds, whose old values are null: one change per
-- element. Runs under the lock of the changes, like everything that draws positions, and therefore last in its
-- transaction (src/store/history/changes.ts). Returns the number of changes.
CREATE OR REPLACE FUNCTION catalog_internal.add_changes(kind text, skus text[], sizes text[], prices integer[], fields text[], old_values text[],
  new_values text[], observed_at timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first bigint;
  last bigint;
BEGIN
  IF skus IS NULL OR cardinality(skus) = 0 THEN
    RETURN 0;
  END IF;
  PERFORM catalog_internal.lock_changes();
  first := nextval('catalog_internal.change_positions');
  last := first + cardinality(skus) * CASE WHEN kind = 'sku' THEN cardinality(fields) ELSE 1 END - 1;
  IF last > first THEN
    PERFORM setval('catalog_internal.change_positions', last);
  END IF;
  INSERT INTO catalog_internal.change_batches (id, last_id, kind, skus, sizes, prices, fields, old_values, new_values, observed_at)
  VALUES (first, last, kind, skus, sizes, prices, fields, old_values, new_values, observed_at);
  RETURN last - first + 1;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_changes(text, text[], text[], integer[], text[], text[], text[], timestamptz) FROM PUBLIC;
