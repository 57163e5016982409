ALTER TABLE "catalog_internal"."live_plan" ADD COLUMN "outage_since" timestamp with time zone;
--> statement-breakpoint
-- Whether a SKU waits after the partner has deferred it, or for its second answer: until then it does not count as due, though its
-- due time has come. After an error it is due. A single expression, as snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.is_waiting(d catalog_internal.due) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT d.claim IS NULL AND (d.deferrals > 0 OR d.failures = 0 AND (d.doubt IS NOT NULL OR d.reason = 'doubted')) AND coalesce(d.held_until > now(), false);
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.is_waiting(catalog_internal.due) TO PUBLIC;
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error, or for a second answer, is asked again at once. counts_as_live null leaves the live
-- flag as it is.
-- What is out of scope is marked in outside_due_at and stays unclaimed (apply_scope), and SKUs that the ledger does not know yet are sorted by the rules.
-- A SKU that was asked for by name (refresh_skus) stays ahead of all others until it is answered. Any other rank is the weight as it stands once the rows are locked, because locking them may have waited for whoever tells
-- the ledger of another weight (watched_to_ledger). Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  marked bigint;
  ranked text[];
  unsorted text[];
  is_scoped boolean;
BEGIN
  -- Until this transaction ends nobody changes what is in scope.
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  is_scoped := (SELECT scoped FROM catalog_internal.scoping);
  WITH written AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(mark_due.skus) AS s
    ORDER BY s COLLATE "C"
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.outside_due_at IS NOT NULL THEN d.lane WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE
        WHEN d.reason = 'scope' THEN d.reason
        -- By this apply_scope tells that it was reported.
        WHEN d.lane = 0 AND excluded.reason IN ('new', 'changed') THEN excluded.reason
        WHEN d.lane = 0 AND d.outside_due_at <= now() AND catalog_internal.lane_of(d.reason) <= excluded.lane THEN d.reason
        WHEN d.lane > 0 AND d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason
        ELSE excluded.reason
      END,
      live = coalesce(counts_as_live, d.live),
      due_at = CASE WHEN d.outside_due_at IS NULL THEN least(d.due_at, excluded.due_at) ELSE d.due_at END,
      outside_due_at = CASE WHEN d.outside_due_at IS NOT NULL THEN least(d.outside_due_at, excluded.due_at) END,
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL OR d.reason = 'doubted') AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank, is_scoped AND (generation = 1 OR outside_due_at IS NOT NULL) AS is_unsorted
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1), array_agg(sku) FILTER (WHERE is_unsorted)
  FROM written INTO marked, ranked, unsorted;
  ranked := ranked || ARRAY(SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus));
  UPDATE catalog_internal.due d SET rank = coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1)
  WHERE d.sku = ANY (ranked) AND d.rank <> coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1) AND d.rank < 'Infinity';
  IF unsorted IS NOT NULL THEN
    PERFORM catalog_internal.apply_scope(unsorted);
  END IF;
  RETURN marked;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
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
    built_after = catalog_internal.happened(built_after, moment, shift),
    behind_since = catalog_internal.happened(behind_since, moment, shift),
    catalog_differs_at = catalog_internal.happened(catalog_differs_at, moment, shift),
    limit_suspected_at = catalog_internal.happened(limit_suspected_at, moment, shift);
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
