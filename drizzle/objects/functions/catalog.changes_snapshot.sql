-- The mirror, SKU by SKU, as the changes that would create it. Every row has the position to continue from. What
-- happens between two pieces, and no piece shows, comes again with the changes after the first piece's position.
CREATE OR REPLACE FUNCTION catalog.changes_snapshot(after text DEFAULT '', skus integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
  IF after IS NULL OR skus IS NULL OR skus < 1 THEN
    RAISE EXCEPTION 'catalog.changes_snapshot needs a SKU to go on after, or the empty text, and a number of SKUs from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY
    WITH here AS MATERIALIZED (SELECT catalog.changes_position() AS position),
    piece AS MATERIALIZED (
      SELECT s.sku, s.state, s.price_source, s.in_manifest, s.first_seen_at FROM catalog.skus s
      WHERE s.sku > changes_snapshot.after COLLATE "C" ORDER BY s.sku LIMIT changes_snapshot.skus
    )
    SELECT h.position, c.* FROM here h CROSS JOIN (
      SELECT 'sku', p.sku, NULL::text, NULL::integer, NULL::integer, f.field, NULL::text, f.new_value, false, p.first_seen_at
      FROM piece p CROSS JOIN LATERAL (VALUES ('state', p.state), ('price_source', p.price_source), ('in_manifest', p.in_manifest::text)) f(field, new_value)
      WHERE f.new_value IS NOT NULL
      UNION ALL
      SELECT 'product', p.sku, NULL, NULL, NULL, f.field, NULL, f.value, false, d.changed_at
      FROM piece p JOIN catalog.products d ON d.sku = p.sku
      -- By name: a seller may have added columns.
      CROSS JOIN LATERAL (VALUES ('name', d.name), ('model', d.model), ('brand', d.brand), ('gender_size', d.gender_size), ('size_type', d.size_type),
        ('category', d.category), ('size_map_size_type', d.size_map_size_type), ('product', d.product::text)) f(field, value)
      WHERE f.value IS NOT NULL
      UNION ALL
      SELECT 'price', p.sku, d.size, NULL, d.price, NULL, NULL, NULL, false, d.changed_at
      FROM piece p JOIN catalog.prices d ON d.sku = p.sku
      WHERE d.price IS NOT NULL
    ) c(kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed, observed_at)
    -- The object last: a column keeps its value where the member of its name is no text any longer.
    ORDER BY c.sku, c.kind = 'price', c.kind = 'product', c.field = 'product', c.field DESC, c.size;
  PERFORM catalog_internal.refuse_written_anew('{catalog.skus,catalog.products,catalog.prices}');
END
$$;

REVOKE ALL ON FUNCTION catalog.changes_snapshot(text, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_snapshot(text, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_snapshot(text, integer) IS 'The next so many SKUs after one, in order of sku, with their prices and metadata, in the form of catalog.changes: for a first copy. position is where to go on from after the last piece; of pieces from several transactions, that of the first. No row: there are no more.';
