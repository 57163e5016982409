-- Applies pending changes of `watched` to the ledger, for `most` SKUs, and says whether there are more. A newly
-- watched SKU is marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that is no
-- longer watched, is not marked for that; it gets its new rank at once if it is urgent, and otherwise with its next
-- mark. A promise of its age holds from here on; a SKU that was never requested is due at once for it. Locks are taken
-- in the common order: lock_new_skus, known SKUs in order of sku, new SKUs, the ledger in order of sku. Every ledger
-- row is locked before its rank is compared, so that a concurrent mark has either read the present weight or is seen
-- here. Called with the row of `watching` locked. Planned each time, because a plan made with few rows would read all
-- of them for each. What is written to a row is looked up for it, by index (enable_seqscan): tables that were analyzed
-- while they were empty, or that had few rows on many pages, would be read as a whole for each row.
CREATE OR REPLACE FUNCTION catalog_internal.watched_to_ledger(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  told text[];
  marked text[];
  added text[];
  rate CONSTANT double precision := catalog_internal.live_rate();
BEGIN
  SELECT array_agg(sku), array_agg(sku) FILTER (WHERE pending = 'mark') INTO told, marked
  FROM (SELECT sku, pending FROM catalog_internal.watched WHERE pending IS NOT NULL ORDER BY sku LIMIT most) o;
  IF told IS NULL THEN
    RETURN false;
  END IF;
  IF cardinality(marked) > (SELECT count(*) FROM catalog.skus WHERE sku = ANY (marked)) THEN
    PERFORM catalog_internal.lock_new_skus();
  END IF;
  PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR NO KEY UPDATE;
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
      FROM catalog_internal.watched w CROSS JOIN LATERAL (SELECT state, asked_at FROM catalog.skus s WHERE s.sku = w.sku OFFSET 0) s
      CROSS JOIN LATERAL (
        SELECT make_interval(secs => catalog_internal.live_promised_interval(w.max_age, CASE WHEN d.live THEN rate END)) AS every
      ) i
      WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL
    ) n WHERE n.promised_at IS NOT NULL
  )
  WHERE d.sku = ANY (told) AND (d.promised_at IS NOT NULL
    OR EXISTS (SELECT FROM catalog_internal.watched w WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL OFFSET 0));
  DELETE FROM catalog_internal.promise_cases p
  WHERE p.sku = ANY (told) AND (SELECT w.max_age IS NULL FROM catalog_internal.watched w WHERE w.sku = p.sku);
  -- Nobody but the watchlist has named it, nor has it been asked for: it is forgotten as one in scope (forgetUnknown),
  -- and not asked for its metadata.
  UPDATE catalog_internal.due d SET reason = 'watched', lane = 0, due_at = 'infinity'
  WHERE d.sku = ANY (told) AND d.reason = 'scope' AND d.generation = 1 AND d.rank < 'Infinity'
    AND d.claim IS NULL AND d.deferrals = 0 AND d.failures = 0
    AND (SELECT w.weight IS NULL FROM catalog_internal.watched w WHERE w.sku = d.sku)
    AND (SELECT s.state = 'pending' AND NOT s.in_manifest FROM catalog.skus s WHERE s.sku = d.sku);
  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;
  UPDATE catalog_internal.watched SET pending = NULL WHERE sku = ANY (told);
  IF catalog_internal.add_sku_changes(added, NULL, NULL, NULL) > 0 THEN
    PERFORM catalog_internal.notify_changes();
  END IF;
  RETURN cardinality(told) = most;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watched_to_ledger(integer) FROM PUBLIC;
