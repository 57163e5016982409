-- What the probability of a price depends on that is the same for all SKUs, computed once per query (like
-- trust_terms): the row of beliefs; for how many minutes longer than between two polls nothing has reported moves of
-- snapshot-priced SKUs (infinite if reports say nothing; while the delta is distrusted, since the manifest route last
-- said that nothing is newer); the bound of `actionable`; and the longest wait in the plan of live refreshes.
CREATE OR REPLACE FUNCTION catalog_internal.price_beliefs() RETURNS catalog_internal.held_beliefs
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  s catalog_internal.sync;
  l catalog_internal.live_plan;
  b catalog_internal.beliefs;
  held catalog_internal.held_beliefs;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO s FROM catalog_internal.sync;
  SELECT * INTO l FROM catalog_internal.live_plan;
  SELECT * INTO b FROM catalog_internal.beliefs;
  held.live_moved_part := b.live_moved_part;
  held.snapshot_moved_part := b.snapshot_moved_part;
  held.reported_moves := b.reported_moves;
  held.waiting_moves := b.waiting_moves;
  held.late_moves := b.late_moves;
  held.missed_rate := b.missed_rate;
  held.move_rate := b.move_rate;
  held.live_prior_minutes := b.live_prior_minutes;
  held.silent_minutes := CASE
    WHEN s.manifest_applied_at IS NULL OR catalog_internal.catalog_state(s) = 'stale' THEN 'infinity'
    ELSE greatest(
      0,
      (extract(epoch FROM clock_timestamp() - coalesce(s.delta_checked_at, s.manifest_applied_at)) - g.delta_interval) / 60,
      CASE WHEN s.delta_doubt = 'distrusted' THEN (extract(epoch FROM clock_timestamp() - CASE WHEN s.seen_snapshot_id = s.snapshot_id
        THEN greatest(s.token_at, s.catalog_checked_at) ELSE s.token_at END) - g.delta_interval) / 60 END,
      extract(epoch FROM clock_timestamp() - l.incident_since) / 60
    )
  END;
  held.confidence := g.actionable_confidence;
  held.longest_wait := make_interval(secs => g.live_interval + coalesce(l.max_interval_minutes, 0) * 60);
  RETURN held;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.price_beliefs() TO PUBLIC;
