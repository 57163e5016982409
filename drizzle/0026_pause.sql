CREATE TABLE "catalog_internal"."pause" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"since" timestamp with time zone NOT NULL,
	"set_at" timestamp with time zone NOT NULL,
	"until" timestamp with time zone NOT NULL,
	"paused_by" text NOT NULL,
	"resumed_by" text,
	CONSTRAINT "pause_one_row" CHECK ("catalog_internal"."pause"."id")
);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.pause IS 'The last pause of all requests to the partner that somebody asked for: in force until its end, or until it is resumed.';
--> statement-breakpoint
-- The latest time that Postgres's clock is known to have shown: as a daemon has noted, or as what the last requests, pause, runs of tasks and syncs
-- were dated, which may have come between two looks at a clock that was ahead for a moment.
CREATE OR REPLACE FUNCTION catalog_internal.clock_high_water() RETURNS timestamptz
LANGUAGE sql STABLE
RETURN (
  SELECT greatest(
    high_water,
    (SELECT max(sent_at) FROM catalog_internal.pace_sends),
    (SELECT set_at FROM catalog_internal.pause),
    (SELECT max(greatest(started_at, finished_at)) FROM catalog_internal.tasks),
    (SELECT greatest(manifest_applied_at, delta_checked_at, snapshot_moved_at, catalog_checked_at, token_at) FROM catalog_internal.sync)
  )
  FROM catalog_internal.clock
);

REVOKE ALL ON FUNCTION catalog_internal.clock_high_water() FROM PUBLIC;
--> statement-breakpoint
-- Puts right what a clock that was ahead has written everywhere but by SKU and in the histories (redate_skus, redate_history), once it has been set back. Returns by how many
-- seconds it was, 0: it was not. That is at most by so much too little as the high-water mark was old.
CREATE OR REPLACE FUNCTION catalog_internal.set_back_clock() RETURNS float8
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz;
  shift interval;
BEGIN
  PERFORM FROM catalog_internal.clock FOR UPDATE;
  LOCK TABLE catalog_internal.lock_pace IN EXCLUSIVE MODE;
  moment := clock_timestamp();
  shift := catalog_internal.clock_high_water() - moment;
  IF shift < interval '2 seconds' THEN
    RETURN 0;
  END IF;
  UPDATE catalog_internal.clock SET high_water = moment, steady_since = moment,
    set_back_seconds = coalesce(set_back_seconds, 0) + extract(epoch FROM shift);
  UPDATE catalog_internal.pace_sends SET sent_at = catalog_internal.happened(sent_at, moment, shift) WHERE sent_at > moment;
  PERFORM catalog_internal.recount_others(moment, shift);
  UPDATE catalog_internal.pace SET raised_at = catalog_internal.happened(raised_at, moment, shift),
    half_open_sent_at = catalog_internal.happened(half_open_sent_at, moment, shift),
    refused_since = catalog_internal.happened(refused_since, moment, shift),
    refused_at = catalog_internal.happened(refused_at, moment, shift),
    backoff_until = catalog_internal.awaited(backoff_until, moment, shift);
  -- As long as it was asked for, and no longer; one of before the clock was ahead keeps its end.
  UPDATE catalog_internal.pause SET
    until = CASE WHEN until < 'infinity' THEN catalog_internal.happened(set_at, moment, shift) + (until - set_at) ELSE until END,
    set_at = catalog_internal.happened(set_at, moment, shift), since = catalog_internal.happened(since, moment, shift)
  WHERE set_at > moment;
  UPDATE catalog_internal.tasks SET next_at = catalog_internal.awaited(next_at, moment, shift),
    started_at = catalog_internal.happened(started_at, moment, shift),
    finished_at = catalog_internal.happened(finished_at, moment, shift),
    succeeded_at = catalog_internal.happened(succeeded_at, moment, shift),
    -- A run that lives renews its lease.
    running_until = CASE WHEN running_until > moment THEN least(running_until, moment + interval '20 seconds') END;
  UPDATE catalog_internal.sync SET manifest_applied_at = catalog_internal.happened(manifest_applied_at, moment, shift),
    delta_checked_at = catalog_internal.happened(delta_checked_at, moment, shift),
    snapshot_moved_at = catalog_internal.happened(snapshot_moved_at, moment, shift),
    catalog_checked_at = catalog_internal.happened(catalog_checked_at, moment, shift),
    chain_broken_at = catalog_internal.happened(chain_broken_at, moment, shift),
    token_at = catalog_internal.happened(token_at, moment, shift),
    built_after = catalog_internal.happened(built_after, moment, shift);
  UPDATE catalog_internal.live_plan SET solved_at = catalog_internal.happened(solved_at, moment, shift),
    incident_since = catalog_internal.happened(incident_since, moment, shift),
    incident_tried_at = catalog_internal.happened(incident_tried_at, moment, shift),
    refreshed_at = catalog_internal.happened(refreshed_at, moment, shift);
  UPDATE catalog_internal.live_ceiling SET since = catalog_internal.happened(since, moment, shift),
    blocked_at = catalog_internal.happened(blocked_at, moment, shift),
    failed_at = catalog_internal.happened(failed_at, moment, shift),
    cycle_from = catalog_internal.happened(cycle_from, moment, shift),
    credit_from = catalog_internal.happened(credit_from, moment, shift);
  -- Calls that store a line, or count a release, are not waited for: what they date is taken for new (src/sync/live/releases.ts).
  UPDATE catalog_internal.live_lines SET weighed_at = catalog_internal.happened(weighed_at, moment, shift),
    since = catalog_internal.happened(since, moment, shift)
  WHERE ctid = ANY (ARRAY(SELECT ctid FROM catalog_internal.live_lines WHERE weighed_at > moment OR since > moment FOR UPDATE SKIP LOCKED));
  UPDATE catalog_internal.releases SET early_at = catalog_internal.happened(early_at, moment, shift)
  WHERE id IN (SELECT id FROM catalog_internal.releases WHERE early_at > moment FOR UPDATE SKIP LOCKED);
  -- Nor is whoever reads hints, or keeps them locked; a hint that is dated ahead is one since the last refresh.
  IF catalog_internal.lock_hint_sources() THEN
    UPDATE catalog_internal.hints SET hinted_at = catalog_internal.happened(hinted_at, moment, shift)
    WHERE id IN (SELECT id FROM catalog_internal.hints WHERE hinted_at > moment FOR UPDATE SKIP LOCKED);
    UPDATE catalog_internal.waiting_hints SET hinted_at = catalog_internal.happened(hinted_at, moment, shift)
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM catalog_internal.waiting_hints WHERE hinted_at > moment FOR UPDATE SKIP LOCKED));
    UPDATE catalog_internal.hint_sources SET last_hint = catalog_internal.happened(last_hint, moment, shift)
    WHERE source IN (SELECT source FROM catalog_internal.hint_sources WHERE last_hint > moment FOR UPDATE SKIP LOCKED);
  END IF;
  UPDATE catalog_internal.live_calls SET called_at = catalog_internal.happened(called_at, moment, shift) WHERE called_at > moment;
  UPDATE catalog_internal.unreported_moves SET seen_at = catalog_internal.happened(seen_at, moment, shift),
    reported_at = catalog_internal.happened(reported_at, moment, shift)
  WHERE seen_at > moment OR reported_at > moment;
  UPDATE catalog_internal.mass_move SET since = catalog_internal.happened(since, moment, shift) WHERE since > moment;
  UPDATE catalog_internal.delta_audit SET since = catalog_internal.happened(since, moment, shift);
  UPDATE catalog_internal.quarantine SET seen_at = catalog_internal.happened(seen_at, moment, shift) WHERE seen_at > moment;
  -- Tests of prices whose age that clock told, and draws that it has dated.
  DELETE FROM catalog_internal.calibration_hours WHERE hour > moment;
  DELETE FROM catalog_internal.random_looks WHERE look_at > moment;
  DELETE FROM catalog_internal.live_backlog WHERE listed_at > moment;
  -- The next reader of the status counts anew.
  DELETE FROM catalog_internal.catalog_counts WHERE counted_at > moment;
  RETURN extract(epoch FROM shift);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.set_back_clock() FROM PUBLIC;
--> statement-breakpoint
-- What trust in a price depends on that is the same for all SKUs, computed once a query. PL/pgSQL plans a statement
-- once a session, and planning is most of the cost of reading one SKU. One SELECT a table, because the planner does
-- not know that these tables have one row each, and prepares a join for millions. SECURITY DEFINER: the view calls it
-- as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.trust_terms(
  OUT live_target interval, OUT snapshot_target interval, OUT incident boolean, OUT catalog_doubt text,
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
  SELECT until INTO paused_until FROM catalog_internal.pause WHERE resumed_by IS NULL AND until > now();
  live_target := make_interval(secs => g.live_interval);
  snapshot_target := make_interval(secs => catalog_internal.snapshot_target(g));
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  catalog_doubt := CASE
    WHEN s.manifest_applied_at IS NULL THEN 'no_baseline'
    WHEN s.catalog_fault IS NULL
         AND coalesce(s.delta_checked_at, s.manifest_applied_at)
           NOT BETWEEN now() - make_interval(secs => catalog_internal.delta_late_after(g)) AND clock_timestamp() + interval '1 minute'
      THEN 'delta_late'
    WHEN catalog_internal.catalog_state(s) = 'stale' THEN 'catalog_stale'
  END;
  -- With a daemon there, this task ends every minute.
  at_work := p.refusal IS NULL AND paused_until IS DISTINCT FROM 'infinity'
    AND coalesce((SELECT finished_at BETWEEN now() - interval '5 minutes' AND clock_timestamp() + interval '1 minute' FROM catalog_internal.tasks WHERE task = 'maintenance'), false);
  -- A pause that ends by itself is waited for as a back-off is.
  backoff_until := greatest(CASE WHEN p.backoff_until > now() THEN p.backoff_until END, paused_until);
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.trust_terms() TO PUBLIC;
--> statement-breakpoint
-- One row. The pacer makes its own row when it first starts, and the pause the first time that somebody asks for one: hence the LEFT JOINs.
CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus, k.pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p) AS requests_per_minute,
       CASE WHEN p.backoff_until > now() THEN p.backoff_until END AS backing_off_until,
       catalog_internal.catalog_state(s) AS catalog_state,
       l.incident_since,
       p.refusal, p.refused_since, coalesce(p.episodes, 0) AS refusals,
       z.since AS paused_since, z.until AS paused_until
FROM catalog_internal.sync s
CROSS JOIN catalog_internal.live_plan l
LEFT JOIN catalog_internal.pace p ON true
LEFT JOIN catalog_internal.pause z ON z.resumed_by IS NULL AND z.until > now()
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= now() AND (deferrals = 0 AND (doubt IS NULL OR failures > 0) OR held_until IS NULL OR claim IS NOT NULL OR held_until <= now())) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= now()) AS oldest_due_at
  FROM catalog_internal.due
) d;

COMMENT ON VIEW catalog.sync_status IS 'How the mirror stands, one row.';
COMMENT ON COLUMN catalog.sync_status.snapshot_id IS 'Snapshot that the mirror follows: the delta is asked from there.';
COMMENT ON COLUMN catalog.sync_status.snapshot_generated_at IS 'Build time of the newest snapshot that the manifest route told of.';
COMMENT ON COLUMN catalog.sync_status.manifest_applied_at IS 'When a manifest was last applied (baseline).';
COMMENT ON COLUMN catalog.sync_status.delta_checked_at IS 'When the delta was last asked for and applied.';
COMMENT ON COLUMN catalog.sync_status.skus IS 'SKUs in the mirror, in any state.';
COMMENT ON COLUMN catalog.sync_status.live_skus IS 'SKUs of price_source live.';
COMMENT ON COLUMN catalog.sync_status.pending_skus IS 'SKUs not priced yet.';
COMMENT ON COLUMN catalog.sync_status.due_skus IS 'SKUs due now; one that was deferred, or waits for a second answer, counts once its wait is over.';
COMMENT ON COLUMN catalog.sync_status.deferred_skus IS 'SKUs that the partner deferred, waiting or due again.';
COMMENT ON COLUMN catalog.sync_status.oldest_due_at IS 'Since when the SKU that has been due for longest is due; null: nothing is due.';
COMMENT ON COLUMN catalog.sync_status.requests_per_minute IS 'Requests a minute that the pacer allows the mirror at present.';
COMMENT ON COLUMN catalog.sync_status.backing_off_until IS 'Until when nobody sends after a refusal; null: no back-off.';
COMMENT ON COLUMN catalog.sync_status.catalog_state IS 'ok; stale: the catalog routes cannot be trusted to report changes, SKUs are re-priced by age; none: no baseline yet.';
COMMENT ON COLUMN catalog.sync_status.incident_since IS 'Since when the whole catalog is taken for live-priced: prices age, and are refreshed by worth with all there is; null: no incident.';
COMMENT ON COLUMN catalog.sync_status.refusal IS 'How the partner refused the last request: throttled-or-forbidden (403), unauthorised (401), authorizer-fault (the authorizer''s 500), account-not-configured; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refused_since IS 'When the first of the present refusals came; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refusals IS 'Refusals in a row, with nothing let through in between.';
COMMENT ON COLUMN catalog.sync_status.paused_since IS 'Since when `catalog-mirror pause` keeps all requests back; null: not paused.';
COMMENT ON COLUMN catalog.sync_status.paused_until IS 'When the pause ends by itself; infinity: with `catalog-mirror resume`; null: not paused.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused or paused without an end, or nothing counted within five minutes.';
