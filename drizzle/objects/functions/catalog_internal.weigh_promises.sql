-- Decides anew which promises are kept, and notes what all of them need, how many were kept in the last day,
-- and what hinders them. What has turned the ledger is told by watched_to_ledger. Called with the row of
-- `watching` locked, each minute and when the watchlist was changed.
CREATE OR REPLACE FUNCTION catalog_internal.weigh_promises() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  rate CONSTANT double precision := catalog_internal.live_rate();
  most CONSTANT double precision := 60 / nullif(greatest(0, catalog_internal.live_promised_interval(catalog_internal.shortest_promise(rate), rate)), 0);
  c record;
BEGIN
  IF NOT EXISTS (SELECT FROM catalog_internal.watched WHERE max_age IS NOT NULL)
     AND NOT EXISTS (SELECT FROM catalog_internal.promising WHERE promises > 0) THEN
    RETURN;
  END IF;
  SELECT * INTO c FROM catalog_internal.promise_capacity();
  WITH promised AS MATERIALIZED (
    SELECT sku, max_age, weight, feasible FROM catalog_internal.watched WHERE max_age IS NOT NULL
  ), fitting AS MATERIALIZED (
    SELECT f.* FROM (SELECT array_agg(sku) AS skus, array_agg(max_age) AS ages, array_agg(weight) AS weights FROM promised) a
    CROSS JOIN LATERAL catalog_internal.promises_that_fit(a.skus, a.ages, a.weights) f
  ), turned AS (
    UPDATE catalog_internal.watched w SET feasible = NOT w.feasible, pending = coalesce(w.pending, 'rank'),
      -- It counts from when it can be kept.
      promised_since = CASE WHEN w.feasible THEN w.promised_since ELSE clock_timestamp() END
    FROM promised p LEFT JOIN fitting f ON f.sku = p.sku
    WHERE w.sku = p.sku AND p.feasible <> coalesce(f.fits, false)
  ), needed AS (
    -- Live ones that are too short take nothing: more requests would not keep them.
    SELECT coalesce(sum(demand) FILTER (WHERE live AND NOT coalesce(demand > most, false)), 0) AS live,
      coalesce(sum(demand) FILTER (WHERE NOT live), 0) AS others, count(*) FILTER (WHERE fits) AS fitting, count(*) FILTER (WHERE NOT fits) AS left_out
    FROM fitting
  ), day AS (
    SELECT coalesce(sum(catalog_internal.last_day(k.cases, k.hour)), 0) AS cases, coalesce(sum(catalog_internal.last_day(k.kept, k.hour)), 0) AS kept
    FROM catalog_internal.promise_cases k
  )
  UPDATE catalog_internal.promising SET promises = (SELECT count(*) FROM promised), feasible = n.fitting, left_out = n.left_out,
    needed = c.requests * greatest(n.live / c.live, n.others / c.others), available = c.requests, cases = day.cases, kept = day.kept,
    hindered_at = CASE WHEN c.hindered IS NULL THEN hindered_at ELSE clock_timestamp() END, hindered_by = coalesce(c.hindered, hindered_by)
  FROM needed n, day;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.weigh_promises() FROM PUBLIC;
