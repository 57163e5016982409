-- Whether a SKU is in scope by the rules: `in`, `out`, or `unknown` if only its metadata can tell and no answer has
-- contained any yet (neither brand, model nor category). A rule that names the SKU itself decides; of all others, one
-- that includes it must match, and none that excludes it. A single row.
CREATE OR REPLACE FUNCTION catalog_internal.scope_of(of_sku text, of_brand text, of_model text, of_category text, has_metadata boolean)
RETURNS TABLE (place text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
  SELECT CASE WHEN NOT g.scoped THEN 'in' ELSE (
    SELECT CASE
      WHEN bool_or(m.include) FILTER (WHERE m.kind = 'sku') THEN 'in'
      WHEN bool_or(NOT m.include) THEN 'out'
      WHEN bool_or(m.include) THEN 'in'
      WHEN g.by_metadata AND NOT has_metadata THEN 'unknown'
      ELSE 'out'
    END
    FROM catalog_internal.scope_rules_of(of_sku, of_brand, of_model, of_category) m
  ) END
  FROM catalog_internal.scoping g;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_of(text, text, text, text, boolean) FROM PUBLIC;
