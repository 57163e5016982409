-- Sorts SKUs by the scope rules, and returns how many changed. Call it with their ledger rows locked, after everything
-- else is written to them. A SKU that leaves the scope keeps everything known about it: outside_due_at says when it
-- would be due, and marks move that; its lane is 0, which nobody claims. A SKU that enters the scope is due at that
-- time, or now if it has passed, because it is late only from now on. A SKU that is requested for its metadata and was
-- answered without any waits: if the price routes do not know it, as long as in scope; if its record had none, an
-- hour, then as long as it has had none, up to METADATA_INTERVAL. held_until keeps spare slots from asking earlier.
-- The lock keeps anybody from changing the rules until this transaction has ended, so that the pass that follows
-- (follow_scope) sees all SKUs sorted by the old ones. Planned each time, because a plan made with few rules would
-- read all of them for each SKU.
CREATE OR REPLACE FUNCTION catalog_internal.apply_scope(skus text[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  moved bigint;
BEGIN
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  UPDATE catalog_internal.due d SET
    outside_due_at = CASE WHEN n.standing <> 'in' THEN n.kept END,
    due_at = CASE n.standing WHEN 'out' THEN 'infinity' WHEN 'asked' THEN n.asks_at ELSE greatest(n.kept, now()) END,
    held_until = CASE
      WHEN d.claim IS NOT NULL THEN d.held_until
      WHEN n.standing = 'asked' THEN CASE WHEN n.asks_at > now() THEN greatest(d.held_until, n.asks_at) ELSE d.held_until END
      -- What it has waited for is no longer asked; a second answer counts as soon as it would have.
      WHEN n.was = 'asked' AND d.due_at > now() THEN CASE WHEN d.doubt IS NOT NULL THEN least(d.held_until, d.doubted_at + interval '5 minutes') END
      ELSE d.held_until
    END,
    reason = n.reason,
    lane = CASE
      WHEN n.standing = 'out' THEN 0
      WHEN n.failures > 0 AND n.kept <= now() THEN catalog_internal.lane_of('error')
      ELSE catalog_internal.lane_of(n.reason)
    END,
    -- One that was asked for by name stays ahead of all others.
    rank = CASE WHEN d.rank < 'Infinity' THEN coalesce(n.weight, 1) ELSE d.rank END
  FROM (
    SELECT l.row_at, l.failures, k.kept, t.standing, b.was, w.weight, a.asks_at,
      CASE
        WHEN t.standing = 'asked' THEN 'scope'
        WHEN l.reason <> 'scope' THEN l.reason
        WHEN k.state = 'pending' THEN 'new'
        -- Marked since it was answered.
        WHEN l.generation IS DISTINCT FROM l.asked_generation THEN 'changed'
        WHEN k.state <> 'priced' THEN 'metadata'
        WHEN l.doubt IS NOT NULL THEN 'doubted'
        WHEN l.live THEN 'live'
        WHEN NOT s.in_manifest THEN 'unlisted'
        WHEN g.sweep_interval > 0 AND g.sweep_interval <= g.metadata_interval THEN 'sweep'
        ELSE 'metadata'
      END AS reason
    FROM unnest(apply_scope.skus) AS u(sku)
    CROSS JOIN LATERAL (SELECT d.ctid AS row_at, d.* FROM catalog_internal.due d WHERE d.sku = u.sku OFFSET 0) l
    -- One that the same statement inserts is not to be seen here.
    LEFT JOIN LATERAL (SELECT s.state, s.in_manifest, s.asked_at FROM catalog.skus s WHERE s.sku = u.sku OFFSET 0) s ON true
    LEFT JOIN LATERAL (SELECT p.brand, p.model, p.category, p.changed_at FROM catalog.products p WHERE p.sku = u.sku OFFSET 0) p ON true
    LEFT JOIN LATERAL (SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = u.sku OFFSET 0) w ON true
    CROSS JOIN catalog_internal.settings g
    CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, coalesce(p.brand, p.model, p.category) IS NOT NULL) o
    CROSS JOIN LATERAL (SELECT coalesce(l.outside_due_at, l.due_at) AS kept, coalesce(s.state, 'pending') AS state) k
    CROSS JOIN LATERAL (SELECT catalog_internal.scope_standing(o.place, k.state, l.reason, k.kept) AS standing) t
    CROSS JOIN LATERAL (SELECT CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END AS was) b
    CROSS JOIN LATERAL (
      SELECT greatest(now(), CASE
        WHEN k.state = 'pending' OR l.reason IN ('new', 'changed', 'watched', 'refresh') AND k.kept <= now() THEN now()
        WHEN k.state <> 'priced' THEN k.kept
        ELSE s.asked_at + least(make_interval(secs => g.metadata_interval), greatest(interval '1 hour', s.asked_at - p.changed_at))
      END) AS asks_at
    ) a
    WHERE t.standing <> b.was OFFSET 0
  ) n
  WHERE d.ctid = n.row_at;
  GET DIAGNOSTICS moved = ROW_COUNT;
  RETURN moved;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.apply_scope(text[]) FROM PUBLIC;
