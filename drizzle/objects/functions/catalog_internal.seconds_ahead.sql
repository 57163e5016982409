-- Seconds of work at the present pace ahead of a refresh that is due now: by the number of its lane, and at the place
-- after the last lane for one that counts as live. As if everything that is at least as urgent went first. Null where
-- the backlog was not counted in the last five minutes. One place further is the same for a live refresh that comes due,
-- or whose wait ends: 0 while no ceiling on live computations is known, as it is asked for in turn then. Both are null
-- where the partner has computed no live price for half an hour, or its live source fails: nobody knows when it will.
CREATE OR REPLACE FUNCTION catalog_internal.seconds_ahead() RETURNS float8[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  p catalog_internal.pace;
  backlog jsonb;
  cheap_per_second float8;
  live_per_second float8;
  rate CONSTANT float8 := catalog_internal.live_rate();
  live_stands boolean;
  ahead float8[];
  lanes CONSTANT integer := cardinality(catalog_internal.lane_names());
BEGIN
  SELECT counts -> 'due' INTO backlog FROM catalog_internal.catalog_counts WHERE counted_at > clock_timestamp() - interval '5 minutes';
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  cheap_per_second := g.bulk_max_skus * catalog_internal.present_ceiling(p) / 60;
  live_per_second := least(rate,
    coalesce((SELECT live_budget FROM catalog_internal.sync), g.bulk_live_budget) * catalog_internal.present_ceiling(p)) / 60;
  live_stands := EXISTS (
    SELECT FROM catalog_internal.live_ceiling c, catalog_internal.live_plan l
    WHERE c.per_minute IS NOT NULL AND c.blocked_at < clock_timestamp() - interval '30 minutes'
      -- As isOutage in src/store/live/limits.ts.
      OR greatest(l.outage_since, CASE WHEN l.outage_since IS NOT NULL THEN c.credit_from END) > clock_timestamp() - interval '1 hour'
  );
  ahead := (
    WITH owed AS MATERIALIZED (
      SELECT r ->> 'reason' AS reason, (r ->> 'count')::float8 AS skus FROM jsonb_array_elements(backlog) AS r
    )
    SELECT array_agg(coalesce(CASE
               WHEN lane <= lanes THEN (SELECT sum(skus) FROM owed WHERE reason NOT IN ('live', 'deferred') AND catalog_internal.lane_of(reason) <= lane)
               ELSE (SELECT sum(skus) FROM owed WHERE reason IN ('live', 'deferred'))
             END, 0) / nullif(CASE WHEN lane <= lanes THEN cheap_per_second ELSE live_per_second END, 0) ORDER BY lane)
    FROM generate_series(1, lanes + 1) AS lane WHERE backlog IS NOT NULL
  );
  ahead[lanes + 2] := CASE WHEN NOT live_stands THEN CASE WHEN rate IS NULL THEN 0 ELSE ahead[lanes + 1] END END;
  ahead[lanes + 1] := CASE WHEN NOT live_stands THEN ahead[lanes + 1] END;
  RETURN ahead;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.seconds_ahead() TO PUBLIC;
