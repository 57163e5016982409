-- Writes how SKUs differ from what they were (null: they did not exist), and returns how many do. Last in its
-- transaction, like every writer of changes.
CREATE OR REPLACE FUNCTION catalog_internal.add_sku_changes(skus text[], states text[], price_sources text[], listed boolean[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  changed bigint;
BEGIN
  SELECT sum(cardinality(g.skus)) INTO changed
  FROM (
    SELECT array_agg(d.sku ORDER BY d.sku) AS skus, d.fields, d.old_values, d.new_values
    FROM (
      SELECT s.sku, array_agg(f.field ORDER BY f.field DESC) AS fields, array_agg(f.old_value ORDER BY f.field DESC) AS old_values,
        array_agg(f.new_value ORDER BY f.field DESC) AS new_values
      FROM unnest(add_sku_changes.skus, states, price_sources, listed) AS o(sku, state, price_source, in_manifest)
      CROSS JOIN LATERAL (SELECT s.sku, s.state, s.price_source, s.in_manifest FROM catalog.skus s WHERE s.sku = o.sku OFFSET 0) s
      CROSS JOIN LATERAL (VALUES ('state', o.state, s.state), ('price_source', o.price_source, s.price_source),
        ('in_manifest', o.in_manifest::text, s.in_manifest::text)) AS f(field, old_value, new_value)
      WHERE f.old_value IS DISTINCT FROM f.new_value
      GROUP BY s.sku
    ) d
    GROUP BY d.fields, d.old_values, d.new_values
  ) g
  CROSS JOIN LATERAL catalog_internal.add_changes('sku', g.skus, NULL, NULL, g.fields, g.old_values, g.new_values, now());
  RETURN coalesce(changed, 0);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_sku_changes(text[], text[], text[], boolean[]) FROM PUBLIC;
