-- The rules that match a SKU. A single statement without settings of its own, so that the planner inlines it.
CREATE OR REPLACE FUNCTION catalog_internal.scope_rules_of(of_sku text, of_brand text, of_model text, of_category text)
RETURNS TABLE (kind text, name text, include boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2
BEGIN ATOMIC
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r WHERE r.kind = 'sku' AND r.name = of_sku
  UNION ALL
  -- Looked up, as OFFSET has it: where rules seem to be few, all prefixes would be read for each SKU.
  SELECT r.kind, r.name, r.include
  FROM catalog_internal.scoping g CROSS JOIN LATERAL unnest(g.prefix_lengths) AS l(length)
  CROSS JOIN LATERAL (
    SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r WHERE r.kind = 'prefix' AND r.name = left(of_sku, l.length) OFFSET 0
  ) r
  UNION ALL
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r
  WHERE r.kind = 'brand' AND r.name = catalog_internal.scope_name('brand', of_brand)
  UNION ALL
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r
  WHERE r.kind = 'model' AND r.name = catalog_internal.scope_name('model', of_model)
  UNION ALL
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r
  WHERE r.kind = 'category' AND r.name = catalog_internal.scope_name('category', of_category);
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_rules_of(text, text, text, text) FROM PUBLIC;
