-- What a clock that was ahead had marked due lay in the future once it was right again, and was asked for then only; and a
-- clock that was ahead between two looks at it was never noticed.

-- The latest time that Postgres's clock is known to have shown: as a daemon has noted, or as what the last requests, runs of tasks and syncs
-- were dated, which may have come between two looks at a clock that was ahead for a moment.
CREATE OR REPLACE FUNCTION catalog_internal.clock_high_water() RETURNS timestamptz
LANGUAGE sql STABLE
RETURN (
  SELECT greatest(
    high_water,
    (SELECT max(sent_at) FROM catalog_internal.pace_sends),
    (SELECT max(greatest(started_at, finished_at)) FROM catalog_internal.tasks),
    (SELECT greatest(manifest_applied_at, delta_checked_at, snapshot_moved_at, catalog_checked_at, token_at) FROM catalog_internal.sync)
  )
  FROM catalog_internal.clock
);

REVOKE ALL ON FUNCTION catalog_internal.clock_high_water() FROM PUBLIC;
--> statement-breakpoint
-- Puts right what a clock that was ahead has written into the ledger, of at most so many SKUs after the SKU named. A mark makes its SKU due at
-- once, so no mark is to come; what waits, and what was planned by that clock for an answer of before, comes earlier by as much as it was
-- ahead. Returns the last of these SKUs, null: there are no more.
CREATE OR REPLACE FUNCTION catalog_internal.redate_due(shift interval, after text, most integer) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
  -- Lanes of SKUs that are asked by a plan. Of the others each has been marked.
  planned smallint[] := ARRAY[catalog_internal.lane_of('live'), catalog_internal.lane_of('metadata'), catalog_internal.lane_of('sweep')];
  -- Less is not worth it to write so many rows: a price that gets older meanwhile says so.
  worthwhile boolean[] := ARRAY[shift > interval '10 minutes', shift > interval '1 day', shift > interval '1 day'];
  last text;
BEGIN
  WITH ahead AS MATERIALIZED (
    SELECT d.sku, misplanned FROM catalog_internal.due d
    CROSS JOIN LATERAL (
      SELECT due_at > moment AND due_at < 'infinity' AND worthwhile[array_position(planned, lane)]
        AND due_at > (SELECT coalesce(s.asked_at, s.first_seen_at) + shift FROM catalog.skus s WHERE s.sku = d.sku) AS misplanned
    ) p
    WHERE d.sku > after AND (
      held_until > moment OR misplanned OR due_at > moment AND due_at < 'infinity' AND lane <> ALL (planned)
    )
    ORDER BY d.sku LIMIT most FOR UPDATE OF d
  ),
  redated AS (
    UPDATE catalog_internal.due d SET held_until = catalog_internal.awaited(d.held_until, moment, shift),
      due_at = CASE
        WHEN a.misplanned THEN catalog_internal.awaited(d.due_at, moment, shift)
        WHEN d.lane = ANY (planned) OR d.due_at = 'infinity' THEN d.due_at
        ELSE least(d.due_at, moment)
      END
    FROM ahead a WHERE d.sku = a.sku
  )
  SELECT max(sku) FROM ahead INTO last;
  RETURN last;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.redate_due(interval, text, integer) FROM PUBLIC;
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
    incident_tried_at = catalog_internal.happened(incident_tried_at, moment, shift);
  UPDATE catalog_internal.live_ceiling SET since = catalog_internal.happened(since, moment, shift),
    blocked_at = catalog_internal.happened(blocked_at, moment, shift),
    failed_at = catalog_internal.happened(failed_at, moment, shift),
    cycle_from = catalog_internal.happened(cycle_from, moment, shift),
    credit_from = catalog_internal.happened(credit_from, moment, shift);
  UPDATE catalog_internal.live_calls SET called_at = catalog_internal.happened(called_at, moment, shift) WHERE called_at > moment;
  UPDATE catalog_internal.unreported_moves SET seen_at = catalog_internal.happened(seen_at, moment, shift),
    reported_at = catalog_internal.happened(reported_at, moment, shift)
  WHERE seen_at > moment OR reported_at > moment;
  UPDATE catalog_internal.delta_audit SET since = catalog_internal.happened(since, moment, shift);
  UPDATE catalog_internal.quarantine SET seen_at = catalog_internal.happened(seen_at, moment, shift) WHERE seen_at > moment;
  -- The next reader of the status counts anew.
  DELETE FROM catalog_internal.catalog_counts WHERE counted_at > moment;
  RETURN extract(epoch FROM shift);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.set_back_clock() FROM PUBLIC;
