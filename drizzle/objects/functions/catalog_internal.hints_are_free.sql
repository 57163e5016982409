-- Whether nobody blocks writing to the tables of hints; if so, nobody will until the transaction ends. Calls and
-- manifests go on without hints rather than wait for whoever locks them.
CREATE OR REPLACE FUNCTION catalog_internal.hints_are_free() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.hints, catalog_internal.waiting_hints IN ROW EXCLUSIVE MODE NOWAIT;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.hints_are_free() FROM PUBLIC;
