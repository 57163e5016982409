-- Whether sellers have requested SKUs that can be marked; one that is being requested is left until the answer.
CREATE OR REPLACE FUNCTION catalog_internal.refreshes_came() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.refreshes_are_free() THEN
    RETURN false;
  END IF;
  RETURN EXISTS (
    SELECT FROM catalog_internal.refresh_requests r
    WHERE NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku AND d.claim IS NOT NULL)
  );
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refreshes_came() FROM PUBLIC;
