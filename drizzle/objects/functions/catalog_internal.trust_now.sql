-- Everything that catalog.sku_trust needs besides a SKU's own rows, as one row: the terms of trust at a moment, the
-- beliefs, and up to when a time can be believed. One function instead of three, because each relation of a view
-- counts when a seller joins it: beyond eight in a statement (join_collapse_limit) Postgres plans the view by itself,
-- and reads the whole mirror for a few of the seller's rows. Columns instead of a composite value, so that a scan
-- reads each of them directly. SECURITY DEFINER, because the view calls it as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.trust_now(
  INOUT moment timestamptz, OUT live_target interval, OUT snapshot_target interval, OUT incident boolean, OUT catalog_doubt text,
  OUT at_work boolean, OUT backoff_until timestamptz, OUT believable_until timestamptz,
  OUT live_moved_part float8, OUT snapshot_moved_part float8, OUT reported_moves float8, OUT waiting_moves float8,
  OUT missed_rate float8, OUT move_rate float8, OUT live_prior_minutes float8, OUT silent_minutes float8,
  OUT confidence float8, OUT longest_wait interval, OUT late_moves float8
)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record := catalog_internal.trust_terms(moment);
  e catalog_internal.held_beliefs := catalog_internal.price_beliefs();
BEGIN
  live_target := t.live_target;
  snapshot_target := t.snapshot_target;
  incident := t.incident;
  catalog_doubt := t.catalog_doubt;
  at_work := t.at_work;
  backoff_until := t.backoff_until;
  believable_until := catalog_internal.believable_until();
  live_moved_part := e.live_moved_part;
  snapshot_moved_part := e.snapshot_moved_part;
  reported_moves := e.reported_moves;
  waiting_moves := e.waiting_moves;
  missed_rate := e.missed_rate;
  move_rate := e.move_rate;
  live_prior_minutes := e.live_prior_minutes;
  silent_minutes := e.silent_minutes;
  confidence := e.confidence;
  longest_wait := e.longest_wait;
  late_moves := e.late_moves;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.trust_now(timestamptz) TO PUBLIC;
