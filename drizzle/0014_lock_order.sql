-- Everybody locks the SKUs that are there in order of sku, and then inserts those that are new. Two who insert at once could
-- still wait for each other, where what one is about to insert is there already for the other: so they take turns. Held to
-- the end of the transaction, and taken before any row of skus.
CREATE FUNCTION catalog_internal.lock_new_skus() RETURNS void
LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtext('catalog_internal.skus'))
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.lock_new_skus() FROM PUBLIC;
--> statement-breakpoint

-- As before (0005), and the rank is the weight as it stands once the rows are locked: a seller's commit may have been waited
-- for. In plpgsql each statement sees what was committed before it began; in a function in SQL all see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  marked bigint;
  ranked text[];
BEGIN
  WITH written AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(mark_due.skus) AS s
    ORDER BY s
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE WHEN d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason ELSE excluded.reason END,
      live = coalesce(counts_as_live, d.live),
      due_at = least(d.due_at, excluded.due_at),
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND d.failures > 0 THEN NULL ELSE d.held_until END
    RETURNING sku, rank
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1) FROM written INTO marked, ranked;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM (
    SELECT unnest(ranked) AS sku UNION SELECT w.sku FROM catalog.watchlist w WHERE w.sku = ANY (mark_due.skus)
  ) named LEFT JOIN catalog.watchlist w USING (sku)
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1);
  RETURN marked;
END
$$;
--> statement-breakpoint

-- As before (0013), with the turn of those who insert, and with every row of the ledger locked before its rank is judged: who
-- marks beside this commit has then either seen it or is seen.
CREATE OR REPLACE FUNCTION catalog_internal.watch_committed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  marked text[];
  others text[];
  emptied boolean;
BEGIN
  WITH mine AS (
    DELETE FROM catalog_internal.watch_changes WHERE transaction = pg_current_xact_id()::text RETURNING added, skus
  ), named AS (
    SELECT sku, bool_or(added) AS added FROM mine, unnest(skus) AS sku GROUP BY sku
  ), present AS (
    SELECT n.sku, n.added AND w.sku IS NOT NULL AS to_mark
    FROM named n LEFT JOIN catalog.watchlist w ON w.sku = n.sku
  )
  SELECT (SELECT array_agg(sku) FROM present WHERE to_mark),
         (SELECT array_agg(sku) FROM present WHERE NOT to_mark),
         (SELECT bool_or(skus IS NULL) FROM mine)
    INTO marked, others, emptied;
  IF emptied THEN
    others := others || (SELECT array_agg(sku) FROM catalog_internal.due WHERE lane = 1 AND rank <> 1);
  END IF;
  IF marked IS NOT NULL THEN
    IF EXISTS (SELECT FROM unnest(marked) AS m(sku) WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = m.sku)) THEN
      PERFORM catalog_internal.lock_new_skus();
    END IF;
    PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR UPDATE;
    INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT DO NOTHING;
  END IF;
  IF others IS NOT NULL THEN
    PERFORM FROM catalog_internal.due WHERE sku = ANY (marked || others) ORDER BY sku FOR UPDATE;
    UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
    FROM unnest(others) AS o(sku) LEFT JOIN catalog.watchlist w USING (sku)
    WHERE d.sku = o.sku AND d.lane = 1 AND d.rank <> coalesce(w.weight, 1);
  END IF;
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  RETURN NULL;
END
$$;
