-- What a SKU waits for or has waited for: deferred by the partner, or an error; null: neither. A single expression,
-- like snapshot_target. catalog.sku_trust contains a copy, as of is_reported.
CREATE OR REPLACE FUNCTION catalog_internal.put_off_by(d catalog_internal.due) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN d.deferrals > 0 THEN 'deferred' WHEN d.failures > 0 THEN 'error' END;
END;

REVOKE ALL ON FUNCTION catalog_internal.put_off_by(catalog_internal.due) FROM PUBLIC;
