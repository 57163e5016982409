-- Copies into `scope_rules` what changed in catalog.scope since it was last read: what sellers' statements recorded,
-- or, with `everything`, all that differs, which includes rows that came by replication and fired no trigger. What the
-- changes may concern is then to be sorted by follow_scope. Called with the row of `scoping` locked. The lock comes
-- last, so that nobody who sorts SKUs waits for more than the commit. Planned each time, because a plan made with few
-- rules would read all of them for each.
CREATE OR REPLACE FUNCTION catalog_internal.read_scope(everything boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  is_scoped boolean := (SELECT scoped FROM catalog_internal.scoping);
  changed text[];
  changed_names text[];
BEGIN
  WITH taken AS (
    DELETE FROM catalog_internal.scope_changes c RETURNING c.kinds, c.names
  ), named AS (
    SELECT DISTINCT kind, value FROM (
      SELECT u.kind, u.value FROM taken t CROSS JOIN LATERAL unnest(t.kinds, t.names) AS u(kind, value)
      UNION ALL SELECT r.kind, r.name FROM catalog_internal.scope_rules r
      WHERE everything OR EXISTS (SELECT FROM taken WHERE kinds IS NULL)
      UNION ALL SELECT s.kind, s.value FROM catalog.scope s WHERE everything
    ) n
  ), present AS MATERIALIZED (
    SELECT n.kind, n.name, n.include, o.row_at FROM (
      SELECT n.kind, catalog_internal.scope_name(n.kind, n.value) AS name, bool_and(s.include) AS include
      FROM named n LEFT JOIN LATERAL (SELECT s.include FROM catalog.scope s WHERE s.kind = n.kind AND s.value = n.value OFFSET 0) s ON true
      GROUP BY 1, 2
    ) n LEFT JOIN LATERAL (SELECT o.ctid AS row_at, o.include FROM catalog_internal.scope_rules o WHERE o.kind = n.kind AND o.name = n.name OFFSET 0) o ON true
    WHERE n.include IS DISTINCT FROM o.include
  ), gone AS (
    DELETE FROM catalog_internal.scope_rules o USING present p WHERE p.include IS NULL AND o.ctid = p.row_at
  ), kept AS (
    INSERT INTO catalog_internal.scope_rules (kind, name, include)
    SELECT kind, name, include FROM present WHERE include IS NOT NULL
    ON CONFLICT (kind, name) DO UPDATE SET include = excluded.include
  )
  SELECT array_agg(p.kind), array_agg(p.name) INTO changed, changed_names FROM present p;
  IF changed IS NULL THEN
    RETURN;
  END IF;
  UPDATE catalog_internal.scoping SET
    prefix_lengths = ARRAY(SELECT DISTINCT length(name) FROM catalog_internal.scope_rules WHERE kind = 'prefix'),
    by_metadata = EXISTS (SELECT FROM catalog_internal.scope_rules WHERE kind IN ('brand', 'model', 'category') AND include);
  IF is_scoped THEN
    INSERT INTO catalog_internal.scope_pending (sku)
    SELECT u.name FROM unnest(changed, changed_names) AS u(kind, name) WHERE u.kind = 'sku' ORDER BY 1 ON CONFLICT DO NOTHING;
    PERFORM catalog_internal.sort_all_with(prefix) FROM (
      -- Of many prefixes all SKUs are sorted at once.
      SELECT DISTINCT CASE WHEN u.kind = 'prefix' AND cardinality(changed) <= 100 THEN u.name ELSE '' END AS prefix
      FROM unnest(changed, changed_names) AS u(kind, name) WHERE u.kind <> 'sku' ORDER BY 1
    ) p;
  END IF;
  LOCK TABLE catalog_internal.lock_scope IN EXCLUSIVE MODE;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.read_scope(boolean) FROM PUBLIC;
