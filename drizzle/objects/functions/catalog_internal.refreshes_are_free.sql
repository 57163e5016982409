-- Whether nobody blocks writing what sellers have requested; if so, nobody will until the transaction ends. Calls go
-- on without it rather than wait for whoever locks it.
CREATE OR REPLACE FUNCTION catalog_internal.refreshes_are_free() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.refresh_requests IN ROW EXCLUSIVE MODE NOWAIT;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refreshes_are_free() FROM PUBLIC;
