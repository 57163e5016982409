-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error, or for a second answer, is asked again at once. counts_as_live null leaves the live
-- flag as it is.
-- A SKU that was asked for by name (refresh_skus) stays ahead of all others until it is answered. Any other rank is the weight as it stands once the rows are locked, because locking them may have waited for whoever tells
-- the ledger of another weight (watched_to_ledger). Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  marked bigint;
  ranked text[];
BEGIN
  WITH written AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(mark_due.skus) AS s
    ORDER BY s COLLATE "C"
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE WHEN d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason ELSE excluded.reason END,
      live = coalesce(counts_as_live, d.live),
      due_at = least(d.due_at, excluded.due_at),
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL) AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1) FROM written INTO marked, ranked;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM (
    SELECT unnest(ranked) AS sku UNION SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus)
  ) named LEFT JOIN catalog_internal.watched w USING (sku)
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1) AND d.rank < 'Infinity';
  RETURN marked;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
