-- Marks SKUs due; nothing else does. Returns the number of rows written. A row that is already due keeps its earlier
-- due_at and its better lane. Every mark increments the generation, so that no answer to an earlier request settles
-- it. It does not shorten the wait of a deferred SKU, or of one with which a call of its own failed; a SKU that waits
-- after any other error, or for a second answer, is requested again at once. If counts_as_live is null the live flag
-- stays; otherwise it is set, whatever the SKU's deferrals had taught. What is out of scope is marked in
-- outside_due_at and stays unclaimed (apply_scope); what is requested for its metadata no longer waits for that; SKUs
-- that the ledger does not know yet are sorted by the rules. A SKU that was requested by name (refresh_skus) stays
-- ahead of all others until it is answered. Any other rank is the weight that holds once the rows are locked, because
-- locking them may have waited for whoever tells the ledger a new weight (watched_to_ledger). Therefore PL/pgSQL, in
-- which each statement sees what was committed before it began; in a SQL function all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
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
      reason = (
        SELECT CASE
          WHEN d.reason = 'scope' THEN d.reason
          -- Who accepts a doubted price ends the wait for its second answer, and nothing else that its SKU is due for.
          WHEN d.reason = 'doubted' THEN excluded.reason
          -- No other reason to ask at once hides that it was reported: apply_scope and p_right go by that.
          WHEN excluded.reason = 'changed' OR excluded.reason = 'new' AND o.is_owed AND o.lane = 1 THEN 'changed'
          WHEN excluded.reason = 'new' THEN excluded.reason
          -- It may have been reported since its call began, which the answer to that does not settle.
          WHEN d.reason = 'new' AND o.is_owed AND excluded.lane < o.lane AND (d.claim IS NOT NULL OR d.asked_claim IS NOT NULL) THEN 'changed'
          -- What was reported stays so in the lane of errors, too, which is behind the one that it was marked for.
          WHEN o.is_owed AND (d.reason = 'changed' OR o.lane <= excluded.lane) THEN d.reason
          ELSE excluded.reason
        END
        FROM (
          SELECT coalesce(d.outside_due_at, d.due_at) <= now() AS is_owed,
            CASE WHEN d.lane > 0 THEN d.lane ELSE catalog_internal.lane_of(d.reason) END AS lane
        ) o
      ),
      live = coalesce(counts_as_live, d.live),
      live_left = CASE WHEN counts_as_live IS NULL THEN d.live_left ELSE 0 END,
      due_at = CASE WHEN d.outside_due_at IS NULL OR d.reason = 'scope' THEN least(d.due_at, excluded.due_at) ELSE d.due_at END,
      outside_due_at = CASE WHEN d.outside_due_at IS NOT NULL THEN least(d.outside_due_at, excluded.due_at) END,
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL OR d.reason = 'doubted' OR d.reason = 'scope' AND d.due_at > now()) AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
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
