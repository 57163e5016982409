-- Seconds of work, at the present pace, ahead of a refresh that is due now: indexed by the number of its lane, and
-- after the last lane for one that counts as live. It assumes that everything at least as urgent goes first. Null if
-- the backlog was not counted in the last five minutes; for a live one also if nobody knows when its turn is
-- (live_ahead).
CREATE OR REPLACE FUNCTION catalog_internal.seconds_ahead() RETURNS float8[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  p catalog_internal.pace;
  per_minute real;
  backlog jsonb;
  cheap_per_second float8;
  live_per_second float8;
  lanes CONSTANT integer := cardinality(catalog_internal.lane_names());
BEGIN
  SELECT counts -> 'due' INTO backlog FROM catalog_internal.catalog_counts WHERE counted_at > clock_timestamp() - interval '5 minutes';
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  per_minute := catalog_internal.present_ceiling(p);
  cheap_per_second := g.bulk_max_skus * per_minute / 60;
  live_per_second := least(catalog_internal.live_rate(),
    coalesce((SELECT live_budget FROM catalog_internal.sync), g.bulk_live_budget) * per_minute) / 60;
  RETURN (
    WITH owed AS MATERIALIZED (
      SELECT r ->> 'reason' AS reason, (r ->> 'count')::float8 AS skus FROM jsonb_array_elements(backlog) AS r
    )
    SELECT array_agg(CASE WHEN lane <= lanes OR catalog_internal.live_ahead() IS NOT NULL THEN coalesce(CASE
               WHEN lane <= lanes THEN (SELECT sum(skus) FROM owed WHERE reason NOT IN ('live', 'deferred') AND catalog_internal.lane_of(reason) <= lane)
               ELSE (SELECT sum(skus) FROM owed WHERE reason IN ('live', 'deferred'))
             END, 0) / nullif(CASE WHEN lane <= lanes THEN cheap_per_second ELSE live_per_second END, 0) END ORDER BY lane)
    FROM generate_series(1, lanes + 1) AS lane WHERE backlog IS NOT NULL
  );
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.seconds_ahead() TO PUBLIC;
