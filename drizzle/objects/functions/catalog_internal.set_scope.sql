-- Sets whether the rules of catalog.scope count (MIRROR_SCOPE). If that changes, all SKUs are to be sorted anew.
-- Returns whether it has changed.
CREATE OR REPLACE FUNCTION catalog_internal.set_scope(by_rules boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE catalog_internal.scoping SET scoped = by_rules WHERE scoped <> by_rules;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM catalog_internal.scope_pending;
  PERFORM catalog_internal.sort_all_with('');
  LOCK TABLE catalog_internal.lock_scope IN EXCLUSIVE MODE;
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.set_scope(boolean) FROM PUBLIC;
