-- What trust in a price depends on that is the same for all SKUs, computed once per query; `moment` is the time of
-- judgement (catalog_internal.moment). PL/pgSQL plans a statement once per session, and planning is most of the cost
-- of reading one SKU. One SELECT per table, because the planner does not know that these tables have one row each, and
-- prepares a join for millions. SECURITY DEFINER, because the view calls it as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.trust_terms(
  INOUT moment timestamptz DEFAULT clock_timestamp(), OUT live_target interval, OUT snapshot_target interval, OUT incident boolean, OUT catalog_doubt text,
  OUT at_work boolean, OUT backoff_until timestamptz
)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  s catalog_internal.sync;
  p catalog_internal.pace;
  paused_until timestamptz;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO s FROM catalog_internal.sync;
  SELECT * INTO p FROM catalog_internal.pace;
  SELECT z.until INTO paused_until FROM catalog_internal.pause z WHERE catalog_internal.pause_holds(z);
  live_target := make_interval(secs => g.live_interval);
  snapshot_target := make_interval(secs => catalog_internal.snapshot_target(g));
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  catalog_doubt := CASE
    WHEN s.manifest_applied_at IS NULL THEN 'no_baseline'
    WHEN s.catalog_fault IS NULL AND catalog_internal.delta_is_late(s, g) THEN 'delta_late'
    WHEN catalog_internal.catalog_state(s) = 'stale' THEN 'catalog_stale'
  END;
  -- With a daemon there, this task ends every minute.
  at_work := p.refusal IS NULL AND paused_until IS DISTINCT FROM 'infinity'
    AND coalesce((SELECT finished_at BETWEEN moment - interval '5 minutes' AND clock_timestamp() + interval '1 minute' FROM catalog_internal.tasks WHERE task = 'maintenance'), false);
  -- A pause that ends by itself is waited for as a back-off is.
  backoff_until := greatest(CASE WHEN p.backoff_until > moment THEN p.backoff_until END, paused_until);
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.trust_terms(timestamptz) TO PUBLIC;
