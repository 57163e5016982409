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
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL) AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
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
-- Copies into `watched` what changed in catalog.watchlist since it was last read: what sellers' statements recorded, or, with
-- `everything`, all that differs, as rows do that came by replication and fired no trigger. At most `most` SKUs are watched;
-- those of the greatest weights come first, and others once there is room. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each. Looked up one by one, as OFFSET has it: a list that is deleted and
-- put in again is often analyzed while it is empty: what is joined is then compared each with each.
CREATE OR REPLACE FUNCTION catalog_internal.read_watchlist(everything boolean, most integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  WITH taken AS (
    DELETE FROM catalog_internal.watch_changes RETURNING added, skus
  ), named AS (
    SELECT sku, bool_or(added) AS added FROM (
      SELECT unnest(skus) AS sku, added FROM taken
      UNION ALL SELECT sku, false FROM catalog_internal.watched WHERE everything OR EXISTS (SELECT FROM taken WHERE skus IS NULL)
      UNION ALL SELECT sku, false FROM catalog.watchlist WHERE everything
    ) n GROUP BY sku
  ), present AS MATERIALIZED (
    SELECT n.sku, w.weight, o.weight AS was, n.added OR o.weight IS NULL AS is_new, extract(epoch FROM w.max_age)::double precision AS max_age
    FROM named n
    LEFT JOIN LATERAL (SELECT weight, max_age FROM catalog.watchlist w WHERE w.sku = n.sku OFFSET 0) w ON true
    LEFT JOIN LATERAL (SELECT weight, max_age FROM catalog_internal.watched o WHERE o.sku = n.sku OFFSET 0) o ON true
    WHERE w.weight IS DISTINCT FROM o.weight OR extract(epoch FROM w.max_age)::double precision IS DISTINCT FROM o.max_age OR (n.added AND w.weight IS NOT NULL)
  ), room AS (
    SELECT most - count(weight) + (SELECT count(*) FROM present WHERE weight IS NULL) AS skus FROM catalog_internal.watched
  )
  INSERT INTO catalog_internal.watched AS o (sku, weight, pending, max_age, promised_since)
  SELECT sku, weight, CASE WHEN is_new AND weight IS NOT NULL THEN 'mark' ELSE 'rank' END, max_age, CASE WHEN max_age IS NOT NULL THEN clock_timestamp() END
  FROM (SELECT *, row_number() OVER (PARTITION BY was IS NULL ORDER BY weight DESC, sku) AS place FROM present) p, room
  WHERE was IS NOT NULL OR place <= room.skus
  ON CONFLICT (sku) DO UPDATE SET weight = excluded.weight,
    pending = CASE WHEN o.pending = 'mark' AND excluded.weight IS NOT NULL THEN 'mark' ELSE excluded.pending END,
    max_age = excluded.max_age, feasible = o.feasible AND excluded.max_age IS NOT NULL,
    promised_since = CASE WHEN excluded.max_age IS NOT DISTINCT FROM o.max_age THEN o.promised_since ELSE excluded.promised_since END;
  PERFORM catalog_internal.weigh_promises();
  IF everything THEN
    -- Watched, but deleted from the mirror by somebody.
    UPDATE catalog_internal.watched o SET pending = 'mark'
    WHERE weight IS NOT NULL AND pending IS DISTINCT FROM 'mark' AND NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = o.sku);
    -- Deleted like that and back since, the ledger knows nothing of its promise.
    UPDATE catalog_internal.watched o SET pending = 'rank'
    FROM catalog.skus s JOIN catalog_internal.due d ON d.sku = s.sku
    WHERE o.max_age IS NOT NULL AND o.feasible AND o.pending IS NULL AND s.sku = o.sku AND s.state IN ('pending', 'priced') AND d.promised_at IS NULL;
    UPDATE catalog_internal.watching SET left_out = l.skus
    FROM (SELECT count(*) AS skus FROM catalog.watchlist w WHERE NOT EXISTS (SELECT FROM catalog_internal.watched o WHERE o.sku = w.sku)) l
    WHERE left_out <> l.skus;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.read_watchlist(boolean, integer) FROM PUBLIC;
--> statement-breakpoint
-- Tells the ledger of `most` SKUs what is pending of `watched`, and whether there is more. A SKU that is watched anew is
-- marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that is watched no longer, is not marked
-- for that; it gets its new rank at once where it is urgent, and with its next mark elsewhere. A promise of its age holds from here on: one that was
-- never asked for is to be at once.
-- Locks are taken in the order of everyone: lock_new_skus, known SKUs in order of sku, new SKUs, the ledger in order of
-- sku. Every row of the ledger is locked before its rank is compared, so that a concurrent mark has either read the
-- weight that counts now or is seen here. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each. What is written to a row is looked up for it, as tables that were
-- analyzed while they were empty would be joined by comparing each row with each.
CREATE OR REPLACE FUNCTION catalog_internal.watched_to_ledger(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  told text[];
  marked text[];
  added text[];
BEGIN
  SELECT array_agg(sku), array_agg(sku) FILTER (WHERE pending = 'mark') INTO told, marked
  FROM (SELECT sku, pending FROM catalog_internal.watched WHERE pending IS NOT NULL ORDER BY sku LIMIT most) o;
  IF told IS NULL THEN
    RETURN false;
  END IF;
  IF cardinality(marked) > (SELECT count(*) FROM catalog.skus WHERE sku = ANY (marked)) THEN
    PERFORM catalog_internal.lock_new_skus();
  END IF;
  PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR UPDATE;
  WITH new AS (
    INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT DO NOTHING RETURNING sku
  )
  SELECT array_agg(sku) INTO added FROM new;
  PERFORM FROM catalog_internal.due WHERE sku = ANY (told) ORDER BY sku FOR UPDATE;
  UPDATE catalog_internal.due d SET rank = coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1)
  WHERE d.sku = ANY (told) AND d.lane = 1 AND d.rank < 'Infinity'
    AND d.rank <> coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1);
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  -- Answers that were applied meanwhile are seen, because their rows are locked.
  UPDATE catalog_internal.due d SET (promised_at, promised_by) = (
    -- One that is late from the beginning is no more urgent than one that was kept until now.
    SELECT n.promised_at, greatest(n.promised_at, n.promised_since) + (n.max_age - n.every) FROM (
      SELECT w.promised_since, make_interval(secs => w.max_age) AS max_age, i.every,
        CASE WHEN s.state = 'pending' THEN w.promised_since ELSE s.asked_at + i.every END AS promised_at
      FROM catalog_internal.watched w JOIN catalog.skus s ON s.sku = w.sku
      CROSS JOIN LATERAL (SELECT make_interval(secs => catalog_internal.promised_interval(w.max_age)) AS every) i
      WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL
    ) n WHERE n.promised_at IS NOT NULL
  )
  WHERE d.sku = ANY (told) AND (d.promised_at IS NOT NULL
    OR EXISTS (SELECT FROM catalog_internal.watched w WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL));
  DELETE FROM catalog_internal.promise_cases p USING catalog_internal.watched w
  WHERE w.sku = ANY (told) AND w.max_age IS NULL AND p.sku = w.sku;
  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;
  UPDATE catalog_internal.watched SET pending = NULL WHERE sku = ANY (told);
  IF catalog_internal.add_sku_changes(added, NULL, NULL, NULL) > 0 THEN
    PERFORM catalog_internal.notify_changes();
  END IF;
  RETURN cardinality(told) = most;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watched_to_ledger(integer) FROM PUBLIC;
--> statement-breakpoint
-- Sorts the next SKUs that are to be sorted, `most` of them, and returns whether there may be more. Those of a pass are compared without a lock, as all
-- that was sorted by other rules is committed (apply_scope), and only those that stand otherwise than they are to are locked, in order of sku, as
-- everyone locks the ledger. Called with the row of `scoping` locked.
CREATE OR REPLACE FUNCTION catalog_internal.follow_scope(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  pass catalog_internal.scope_passes;
  last text;
  is_over boolean;
  piece text[];
BEGIN
  SELECT array_agg(sku) INTO piece FROM (SELECT sku FROM catalog_internal.scope_pending ORDER BY sku LIMIT most) p;
  DELETE FROM catalog_internal.scope_pending WHERE sku = ANY (piece);
  IF piece IS NULL THEN
    SELECT * INTO pass FROM catalog_internal.scope_passes ORDER BY id LIMIT 1;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    SELECT max(n.sku), count(*) < most OR coalesce(bool_or(NOT starts_with(n.sku, pass.prefix)), false),
      array_agg(n.sku) FILTER (WHERE starts_with(n.sku, pass.prefix) AND n.standing <> n.was)
    INTO last, is_over, piece
    FROM (
      SELECT l.sku, catalog_internal.scope_standing(o.place, s.state, l.reason, coalesce(l.outside_due_at, l.due_at)) AS standing,
        CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END AS was
      FROM (SELECT * FROM catalog_internal.due WHERE sku >= pass.from_sku ORDER BY sku LIMIT most) l
      LEFT JOIN catalog.skus s ON s.sku = l.sku LEFT JOIN catalog.products p ON p.sku = l.sku
      CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, p.sku IS NOT NULL) o
    ) n;
    IF is_over THEN
      DELETE FROM catalog_internal.scope_passes WHERE id = pass.id;
    ELSE
      -- The next one in the order of bytes.
      UPDATE catalog_internal.scope_passes SET from_sku = last || E'\x01' WHERE id = pass.id;
    END IF;
  END IF;
  IF piece IS NOT NULL THEN
    PERFORM FROM catalog_internal.due WHERE sku = ANY (piece) ORDER BY sku FOR UPDATE;
    PERFORM catalog_internal.apply_scope(piece);
  END IF;
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.follow_scope(integer) FROM PUBLIC;
--> statement-breakpoint
-- A seller tells that a SKU has probably moved. It is only written down: nothing that anybody else writes or locks is waited for, and nobody
-- waits for the caller's transaction, however long it stays open. The mirror reads it once that is committed.
-- By index: a statement that gives thousands of hints keeps the plan of its first, when there was none to be read.
CREATE OR REPLACE FUNCTION catalog.hint(sku text, source text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
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
  IF (SELECT id FROM catalog_internal.hints ORDER BY id DESC LIMIT 1) - (SELECT id FROM catalog_internal.hints ORDER BY id LIMIT 1) >= 100000 THEN
    RETURN false;
  END IF;
  INSERT INTO catalog_internal.hints (sku, source, hinted_at) VALUES (hint.sku, named, clock_timestamp());
  RETURN true;
END
$$;
