-- Which promises the account can keep, the one place that decides it: in order of weight, and of equal weights the
-- least demanding first, until the capacity for promises is used up. If all were kept in turn, each would be late as
-- soon as there are too many. A promise for a live SKU that is shorter than the partner's ceiling allows does not fit,
-- and takes nothing from others. `demand` is in refreshes a minute. SKUs that are not found or removed have no price
-- that could age, and those out of scope are not requested: they need nothing and are left out.
CREATE OR REPLACE FUNCTION catalog_internal.promises_that_fit(skus text[], max_ages double precision[], weights real[])
RETURNS TABLE (sku text, live boolean, demand double precision, fits boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT n.sku, n.live, n.demand,
         n.is_possible AND sum(n.demand) FILTER (WHERE n.is_possible) OVER (PARTITION BY n.live ORDER BY n.weight DESC, n.demand, n.sku COLLATE "C")
           <= CASE WHEN n.live THEN c.live ELSE c.others END
  FROM catalog_internal.promise_capacity() c
  CROSS JOIN (SELECT catalog_internal.live_rate() AS rate) r
  CROSS JOIN LATERAL (
    SELECT a.sku, a.weight, k.live, 60 / catalog_internal.live_promised_interval(a.max_age, CASE WHEN k.live THEN r.rate END) AS demand,
           NOT (k.live AND a.max_age < catalog_internal.shortest_promise(r.rate)) AS is_possible
    FROM unnest(skus, max_ages, weights) AS a(sku, max_age, weight)
    LEFT JOIN LATERAL (SELECT s.state FROM catalog.skus s WHERE s.sku = a.sku OFFSET 0) s ON true
    LEFT JOIN LATERAL (SELECT d.live, d.outside_due_at FROM catalog_internal.due d WHERE d.sku = a.sku OFFSET 0) d ON true
    CROSS JOIN LATERAL (SELECT coalesce(d.live OR c.incident, false) AS live) k
    WHERE coalesce(s.state IN ('pending', 'priced'), true) AND d.outside_due_at IS NULL
  ) n;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.promises_that_fit(text[], double precision[], real[]) FROM PUBLIC;
