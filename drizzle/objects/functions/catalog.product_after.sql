-- The value of a column is also the member of that name, except that the size type is not a member of the product.
CREATE OR REPLACE FUNCTION catalog.product_after(product jsonb, field text, old_value text, new_value text) RETURNS jsonb
LANGUAGE sql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN field = 'product' THEN catalog_internal.merged(product, old_value::jsonb, new_value::jsonb)
    WHEN field = 'size_map_size_type' OR product IS NULL THEN product
    ELSE product || jsonb_build_object(field, new_value)
  END
$$;

REVOKE ALL ON FUNCTION catalog.product_after(jsonb, text, text, text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.product_after(jsonb, text, text, text) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.product_after(jsonb, text, text, text) IS 'The product object after a change of kind product (catalog.changes), for who keeps a copy of it.';
