-- Copies into `watched` what changed in catalog.watchlist since it was last read: what sellers' statements recorded,
-- or, with `everything`, all that differs, which includes rows that came by replication and fired no trigger. At most
-- `most` SKUs are watched, those of the greatest weights first, and others once there is room. Called with the row of
-- `watching` locked. Planned each time, because a plan made with few rows would read all of them for each. Rows are
-- looked up one by one (OFFSET): a list that is deleted and inserted again is often analyzed while it is empty, and a
-- join then compares each row with each. And by index (enable_seqscan): for a list of few rows on many pages, as a
-- DELETE leaves it, Postgres considers an index more expensive than reading all of it for each. An unavoidable scan
-- then seems so expensive that Postgres would compile it, which takes seconds: therefore no jit.
CREATE OR REPLACE FUNCTION catalog_internal.read_watchlist(everything boolean, most integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
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
    WHERE weight IS NOT NULL AND pending IS DISTINCT FROM 'mark' AND NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = o.sku OFFSET 0);
    -- Deleted like that and back since, the ledger knows nothing of its promise.
    UPDATE catalog_internal.watched o SET pending = 'rank'
    WHERE o.max_age IS NOT NULL AND o.feasible AND o.pending IS NULL
      AND EXISTS (SELECT FROM catalog.skus s WHERE s.sku = o.sku AND s.state IN ('pending', 'priced') OFFSET 0)
      AND EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = o.sku AND d.promised_at IS NULL OFFSET 0);
    UPDATE catalog_internal.watching SET left_out = l.skus
    FROM (SELECT count(*) AS skus FROM catalog.watchlist w WHERE NOT EXISTS (SELECT FROM catalog_internal.watched o WHERE o.sku = w.sku OFFSET 0)) l
    WHERE left_out <> l.skus;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.read_watchlist(boolean, integer) FROM PUBLIC;
