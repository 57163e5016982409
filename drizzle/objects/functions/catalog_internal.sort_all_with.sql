-- Has all SKUs with a prefix sorted (follow_scope), from the first one on, including those that a pass has just
-- sorted.
CREATE OR REPLACE FUNCTION catalog_internal.sort_all_with(of_prefix text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- A pass of all SKUs that has not begun sorts these, too.
  IF EXISTS (SELECT FROM catalog_internal.scope_passes WHERE prefix = '' AND from_sku = '') THEN
    RETURN;
  END IF;
  DELETE FROM catalog_internal.scope_passes WHERE starts_with(prefix, of_prefix);
  INSERT INTO catalog_internal.scope_passes (prefix, from_sku) VALUES (of_prefix, of_prefix);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.sort_all_with(text) FROM PUBLIC;
