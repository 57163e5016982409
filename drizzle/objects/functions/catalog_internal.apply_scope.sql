-- Sorts SKUs by the rules, and returns how many stand otherwise than before. Call it with their rows of the
-- ledger locked, after all that is written of them. What leaves the scope keeps all that is known of it: in
-- outside_due_at when it would be due, which marks move on; its lane is 0, which nobody claims. What comes
-- into it is due then, or now where that is past: since now it is late. The lock holds back whoever changes
-- the rules until this transaction has ended, so that all SKUs that were sorted by the old ones are seen by
-- the pass that follows (follow_scope). Planned each time: a plan from when there were few rules would read
-- all of them for each SKU.
CREATE OR REPLACE FUNCTION catalog_internal.apply_scope(skus text[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  moved bigint;
BEGIN
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  UPDATE catalog_internal.due d SET
    outside_due_at = CASE WHEN n.standing <> 'in' THEN n.kept END,
    due_at = CASE n.standing WHEN 'out' THEN 'infinity' WHEN 'asked' THEN now() ELSE greatest(n.kept, now()) END,
    reason = n.reason,
    lane = CASE
      WHEN n.standing = 'out' THEN 0
      WHEN n.failures > 0 AND n.kept <= now() THEN catalog_internal.lane_of('error')
      ELSE catalog_internal.lane_of(n.reason)
    END,
    -- One that was asked for by name stays ahead of all others.
    rank = CASE WHEN d.rank < 'Infinity' THEN coalesce(n.weight, 1) ELSE d.rank END
  FROM (
    SELECT l.sku, l.failures, k.kept, t.standing, w.weight,
      CASE
        WHEN t.standing = 'asked' THEN 'scope'
        WHEN l.reason <> 'scope' THEN l.reason
        WHEN coalesce(s.state, 'pending') = 'pending' THEN 'new'
        ELSE 'changed'
      END AS reason
    FROM unnest(apply_scope.skus) AS a(sku) JOIN catalog_internal.due l ON l.sku = a.sku
    -- One that the same statement inserts is not to be seen here.
    LEFT JOIN catalog.skus s ON s.sku = a.sku LEFT JOIN catalog.products p ON p.sku = a.sku LEFT JOIN catalog_internal.watched w ON w.sku = a.sku
    CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, p.sku IS NOT NULL) o
    CROSS JOIN LATERAL (SELECT coalesce(l.outside_due_at, l.due_at) AS kept) k
    CROSS JOIN LATERAL (SELECT catalog_internal.scope_standing(o.place, coalesce(s.state, 'pending'), l.reason, k.kept) AS standing) t
    WHERE t.standing <> CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END
  ) n
  WHERE d.sku = n.sku;
  GET DIAGNOSTICS moved = ROW_COUNT;
  RETURN moved;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.apply_scope(text[]) FROM PUBLIC;
