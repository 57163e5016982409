-- Whether this is the database that history was last written to, on the same start of its server (follow_lineage). A
-- standby counts as its primary.
CREATE OR REPLACE FUNCTION catalog_internal.lineage_holds() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN pg_is_in_recovery() OR EXISTS (
    SELECT FROM catalog_internal.lineage known, catalog_internal.present_lineage() present
    WHERE present.database = known.database AND present.started = known.started AND coalesce(present.system, known.system) IS NOT DISTINCT FROM known.system
      AND coalesce(present.timeline, known.timeline) IS NOT DISTINCT FROM known.timeline);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.lineage_holds() FROM PUBLIC;
