-- Whoever locks the tables of hints holds up no call; lines of manifests are hints like any other.
-- Whether nobody keeps the tables of hints from being written, and, until the transaction ends, nobody will: calls and manifests go on without
-- hints rather than wait for whoever locks them.
CREATE OR REPLACE FUNCTION catalog_internal.hints_are_free() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.hints, catalog_internal.waiting_hints IN ROW EXCLUSIVE MODE NOWAIT;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.hints_are_free() FROM PUBLIC;
--> statement-breakpoint
-- Whether the tables of hints are free, and the sources are this transaction's alone until it ends: only one at a time counts hints that wait,
-- and adds others.
CREATE OR REPLACE FUNCTION catalog_internal.lock_hint_sources() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.hints_are_free() THEN
    RETURN false;
  END IF;
  LOCK TABLE catalog_internal.hint_sources IN SHARE ROW EXCLUSIVE MODE NOWAIT;
  PERFORM FROM catalog_internal.hint_sources ORDER BY source FOR UPDATE NOWAIT;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.lock_hint_sources() FROM PUBLIC;
--> statement-breakpoint
-- Whether there are hints to be read. A hint at a SKU that is asked for at the moment is left until the answer.
CREATE OR REPLACE FUNCTION catalog_internal.hints_came() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.hints_are_free() THEN
    RETURN false;
  END IF;
  -- A statement of its own: it is planned, for which its tables are locked, when it is reached.
  RETURN EXISTS (
    SELECT FROM catalog_internal.hints h
    WHERE NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = h.sku AND d.claim IS NOT NULL)
  );
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.hints_came() FROM PUBLIC;
--> statement-breakpoint
-- The hints that wait for the refresh of each of these SKUs, as JSON by SKU; none of a SKU whose hints an earlier refresh has left behind. Null:
-- somebody keeps them locked.
CREATE OR REPLACE FUNCTION catalog_internal.hints_at(skus text[]) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.hints_are_free() THEN
    RETURN NULL;
  END IF;
  RETURN (
    SELECT coalesce(jsonb_object_agg(sku, hints), '{}') FROM (
      SELECT q.sku, coalesce(jsonb_agg(jsonb_build_object('source', q.source, 'hazard', q.hazard))
        FILTER (WHERE s.asked_at IS NULL OR q.hinted_at > s.asked_at), '[]') AS hints
      FROM catalog_internal.waiting_hints q JOIN catalog.skus s ON s.sku = q.sku
      WHERE q.sku = ANY (hints_at.skus) GROUP BY q.sku
    ) h
  );
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.hints_at(text[]) FROM PUBLIC;
--> statement-breakpoint
-- A seller tells that a SKU has probably moved. It is only written down: nothing that anybody else writes or locks is waited for, and nobody
-- waits for the caller's transaction, however long it stays open. The mirror reads it once that is committed.
CREATE OR REPLACE FUNCTION catalog.hint(sku text, source text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named text := btrim(hint.source, E' \t\r\n');
BEGIN
  -- Names of the mirror's own sources are not a seller's to use.
  IF named IS NULL OR length(named) NOT BETWEEN 1 AND 60 OR named ~ '^(manifest|delta)\.' OR NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = hint.sku) THEN
    RETURN false;
  END IF;
  BEGIN
    LOCK TABLE catalog_internal.hints IN ROW EXCLUSIVE MODE NOWAIT;
  EXCEPTION WHEN lock_not_available THEN
    RETURN false;
  END;
  IF EXISTS (SELECT FROM catalog_internal.hints h WHERE h.sku = hint.sku AND h.source = named) THEN
    RETURN true;
  END IF;
  -- As many as their ids are apart, at most: to count them would take longer with each.
  IF (SELECT max(id) - min(id) FROM catalog_internal.hints) >= 100000 THEN
    RETURN false;
  END IF;
  INSERT INTO catalog_internal.hints (sku, source, hinted_at) VALUES (hint.sku, named, clock_timestamp());
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION catalog.hint(text, text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.hint(text, text) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.hint(text, text) IS 'Tells the mirror that a SKU has probably moved, for whoever has seen a sign of it. source is a name of your choice, of 60 characters at most: how often each source is right is learned (catalog.hint_sources). Names that begin with manifest. or delta. are the mirror''s own. False: it was not taken, as the SKU is not known, the source has no such name, 100,000 hints wait, or somebody keeps them locked.';
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
COMMENT ON VIEW catalog.hint_sources IS 'Who has called catalog.hint, and what refreshes have shown of it; manifest.updated_at and manifest.sizes are what lines of manifests tell. Of more than 50 sources the others are one, other.';
COMMENT ON COLUMN catalog.hint_sources.source IS 'The name that its callers have given, or the part of a manifest that it is.';
COMMENT ON COLUMN catalog.hint_sources.last_hint IS 'When the last hint was read that it gave.';
COMMENT ON COLUMN catalog.hint_sources.hints IS 'Hints that the mirror has read, those at SKUs that are not live included.';
COMMENT ON COLUMN catalog.hint_sources.refreshes_brought_forward IS 'Hints that have brought the refresh of their SKU forward.';
COMMENT ON COLUMN catalog.hint_sources.refreshes_tested IS 'Refreshes of SKUs that it had hinted at, as far as they are remembered: 500 at most.';
COMMENT ON COLUMN catalog.hint_sources.precision IS 'How often such a SKU has moved, beyond what its own rate of change says.';
COMMENT ON COLUMN catalog.hint_sources.recall IS 'The part of all moves of live SKUs that the source told of.';
