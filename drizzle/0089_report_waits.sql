-- How long moves wait for the delta's reports is learned from the reports themselves: refreshes that nobody has asked for find
-- hardly any of the SKUs that move often, as each of their reports has been answered a moment before.
CREATE TABLE "catalog_internal"."report_waits" (
	"hour" timestamp with time zone PRIMARY KEY NOT NULL,
	"reports" bigint NOT NULL,
	"minutes" double precision NOT NULL
);
--> statement-breakpoint
-- Puts right what a clock that was ahead has written everywhere but by SKU and in the histories (redate_skus,
-- redate_history), once it has been set back. Returns by how many seconds it was, 0: it was not. That is at
-- most by so much too little as the high-water mark was old.
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
    built_after = catalog_internal.happened(built_after, moment, shift),
    behind_since = catalog_internal.happened(behind_since, moment, shift),
    delta_still_since = catalog_internal.happened(delta_still_since, moment, shift),
    catalog_differs_at = catalog_internal.happened(catalog_differs_at, moment, shift),
    limit_suspected_at = catalog_internal.happened(limit_suspected_at, moment, shift),
    -- Their 'generated' is of the partner's clock.
    named_snapshots = (
      SELECT coalesce(jsonb_agg(n || jsonb_strip_nulls(jsonb_build_object(
        'named', catalog_internal.happened((n ->> 'named')::timestamptz, moment, shift),
        'seen', catalog_internal.happened((n ->> 'seen')::timestamptz, moment, shift))) ORDER BY nth), '[]')
      FROM jsonb_array_elements(named_snapshots) WITH ORDINALITY e (n, nth)
    );
  UPDATE catalog_internal.account SET key_since = catalog_internal.happened(key_since, moment, shift) WHERE key_since > moment;
  UPDATE catalog_internal.beliefs SET late_since = catalog_internal.happened(late_since, moment, shift) WHERE late_since > moment;
  UPDATE catalog_internal.live_plan SET solved_at = catalog_internal.happened(solved_at, moment, shift),
    incident_since = catalog_internal.happened(incident_since, moment, shift),
    incident_tried_at = catalog_internal.happened(incident_tried_at, moment, shift),
    outage_since = catalog_internal.happened(outage_since, moment, shift),
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
  -- An answer is not waited for either: a count that stays dated ahead goes on in its hour.
  UPDATE catalog_internal.promise_cases SET hour = catalog_internal.happened(hour, moment, shift)
  WHERE sku IN (SELECT sku FROM catalog_internal.promise_cases WHERE hour > moment FOR UPDATE SKIP LOCKED);
  UPDATE catalog_internal.watched SET promised_since = catalog_internal.happened(promised_since, moment, shift)
  WHERE sku IN (SELECT sku FROM catalog_internal.watched WHERE promised_since > moment FOR UPDATE SKIP LOCKED);
  UPDATE catalog_internal.promising SET hindered_at = catalog_internal.happened(hindered_at, moment, shift)
  WHERE id IN (SELECT id FROM catalog_internal.promising WHERE hindered_at > moment FOR UPDATE SKIP LOCKED);
  UPDATE catalog_internal.live_calls SET called_at = catalog_internal.happened(called_at, moment, shift) WHERE called_at > moment;
  UPDATE catalog_internal.unreported_moves SET seen_at = catalog_internal.happened(seen_at, moment, shift),
    reported_at = catalog_internal.happened(reported_at, moment, shift)
  WHERE seen_at > moment OR reported_at > moment;
  UPDATE catalog_internal.learned_names SET missing_since = catalog_internal.happened(missing_since, moment, shift),
    learned_at = catalog_internal.happened(learned_at, moment, shift)
  WHERE missing_since > moment OR learned_at > moment;
  UPDATE catalog_internal.mass_move SET since = catalog_internal.happened(since, moment, shift),
    accepted_at = catalog_internal.happened(accepted_at, moment, shift)
  WHERE since > moment OR accepted_at > moment;
  UPDATE catalog_internal.muted_members SET since = catalog_internal.happened(since, moment, shift) WHERE since > moment;
  UPDATE catalog_internal.odd_moves SET begun_at = catalog_internal.happened(begun_at, moment, shift) WHERE begun_at > moment;
  UPDATE catalog_internal.idle_manifests SET applied_at = catalog_internal.happened(applied_at, moment, shift) WHERE applied_at > moment;
  UPDATE catalog_internal.delta_audit SET since = catalog_internal.happened(since, moment, shift);
  UPDATE catalog_internal.quarantine SET seen_at = catalog_internal.happened(seen_at, moment, shift) WHERE seen_at > moment;
  -- Tests of prices whose age that clock told, and draws that it has dated.
  DELETE FROM catalog_internal.calibration_hours WHERE hour > moment;
  DELETE FROM catalog_internal.report_waits WHERE hour > moment;
  DELETE FROM catalog_internal.random_looks WHERE look_at > moment;
  DELETE FROM catalog_internal.live_backlog WHERE listed_at > moment;
  -- The next reader of the status counts anew.
  DELETE FROM catalog_internal.catalog_counts WHERE counted_at > moment;
  RETURN extract(epoch FROM shift);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.set_back_clock() FROM PUBLIC;
