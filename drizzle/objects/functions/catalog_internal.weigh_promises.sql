-- Decides anew which promises are kept, and records what all of them need, how many were kept in the last day, and
-- what hinders them. watched_to_ledger applies changes to the ledger. Called with the row of `watching` locked, each
-- minute and when the watchlist was changed.
CREATE OR REPLACE FUNCTION catalog_internal.weigh_promises() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  rate CONSTANT double precision := catalog_internal.live_rate();
  most CONSTANT double precision := 60 / nullif(greatest(0, catalog_internal.live_promised_interval(catalog_internal.shortest_promise(rate), rate)), 0);
  c record;
  fitting text[];
  live_demand double precision;
  others_demand double precision;
  without_room integer;
BEGIN
  IF NOT EXISTS (SELECT FROM catalog_internal.watched WHERE max_age IS NOT NULL)
     AND NOT EXISTS (SELECT FROM catalog_internal.promising WHERE promises > 0) THEN
    RETURN;
  END IF;
  SELECT * INTO c FROM catalog_internal.promise_capacity();
  -- Live ones that are too short take nothing: more requests would not keep them.
  SELECT coalesce(sum(demand) FILTER (WHERE live AND NOT coalesce(demand > most, false)), 0), coalesce(sum(demand) FILTER (WHERE NOT live), 0),
    coalesce(array_agg(sku) FILTER (WHERE fits), '{}'), count(*) FILTER (WHERE NOT fits) INTO live_demand, others_demand, fitting, without_room
  FROM (
    SELECT array_agg(sku) AS skus, array_agg(max_age) AS ages, array_agg(weight) AS weights FROM catalog_internal.watched WHERE max_age IS NOT NULL
  ) a CROSS JOIN LATERAL catalog_internal.promises_that_fit(a.skus, a.ages, a.weights);
  -- By an array, which is known when this is planned, and no join: whatever the planner takes the list for, each SKU
  -- is looked up in a hash of it.
  UPDATE catalog_internal.watched w SET feasible = NOT w.feasible, pending = coalesce(w.pending, 'rank'),
    -- It counts from when it can be kept.
    promised_since = CASE WHEN w.feasible THEN w.promised_since ELSE clock_timestamp() END
  WHERE w.max_age IS NOT NULL AND w.feasible <> (w.sku = ANY (fitting));
  WITH day AS (
    SELECT coalesce(sum(catalog_internal.last_day(k.cases, k.hour)), 0) AS cases, coalesce(sum(catalog_internal.last_day(k.kept, k.hour)), 0) AS kept
    FROM catalog_internal.promise_cases k
  )
  UPDATE catalog_internal.promising SET promises = (SELECT count(*) FROM catalog_internal.watched WHERE max_age IS NOT NULL), feasible = cardinality(fitting),
    left_out = without_room,
    needed = c.requests * greatest(live_demand / c.live, others_demand / c.others), available = c.requests, cases = day.cases, kept = day.kept,
    hindered_at = CASE WHEN c.hindered IS NULL THEN hindered_at ELSE clock_timestamp() END, hindered_by = coalesce(c.hindered, hindered_by)
  FROM day;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.weigh_promises() FROM PUBLIC;
