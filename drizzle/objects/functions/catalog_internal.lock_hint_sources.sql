-- Whether the tables of hints are free; if so, the sources belong to this transaction alone until it ends: only one at
-- a time counts waiting hints and adds others.
CREATE OR REPLACE FUNCTION catalog_internal.lock_hint_sources() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.hints_are_free() THEN
    RETURN false;
  END IF;
  LOCK TABLE catalog_internal.hint_sources IN SHARE ROW EXCLUSIVE MODE NOWAIT;
  PERFORM FROM catalog_internal.hint_sources ORDER BY source FOR UPDATE NOWAIT;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.lock_hint_sources() FROM PUBLIC;
