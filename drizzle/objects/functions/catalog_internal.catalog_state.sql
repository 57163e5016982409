-- 'none' before the first baseline; 'stale' while the catalog routes do not report changes, or cannot be trusted to;
-- otherwise 'ok'. A token that moved proves that the partner's catalog builder works, until the manifest route is
-- checked again. SECURITY DEFINER, because a view reads tables as its owner but calls functions as its reader, who may
-- not read the settings. PL/pgSQL plans its statement once per session, and sku_trust calls it in every query. It only
-- reads, so queries may use parallel workers.
CREATE OR REPLACE FUNCTION catalog_internal.catalog_state(s catalog_internal.sync) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  RETURN CASE
    WHEN s.manifest_applied_at IS NULL THEN 'none'
    WHEN s.catalog_fault IS NOT NULL THEN 'stale'
    WHEN s.chain_broken_at IS NOT NULL AND s.manifest_refused IS NOT NULL THEN 'stale'
    WHEN greatest(s.snapshot_generated_at, s.snapshot_moved_at)
         < clock_timestamp() - make_interval(secs => g.catalog_stale_after) THEN 'stale'
    WHEN catalog_internal.delta_is_late(s, g) THEN 'stale'
    ELSE 'ok'
  END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.catalog_state(catalog_internal.sync) TO PUBLIC;
