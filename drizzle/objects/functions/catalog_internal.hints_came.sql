-- Whether there are hints to be read. A hint at a SKU that is being requested is left until the answer.
CREATE OR REPLACE FUNCTION catalog_internal.hints_came() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.hints_are_free() THEN
    RETURN false;
  END IF;
  -- A statement of its own: it is planned, for which its tables are locked, when it is reached.
  RETURN EXISTS (
    SELECT FROM catalog_internal.hints h
    WHERE NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = h.sku AND d.claim IS NOT NULL)
  );
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.hints_came() FROM PUBLIC;
