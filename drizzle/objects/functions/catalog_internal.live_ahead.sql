-- How long a live SKU waits for its turn once it is due, or its wait is over, given all live SKUs that were due at the
-- last count and the rate at which the partner computes (live_rate): nothing while no ceiling is known. Null if nobody
-- knows, because there was no count in the last five minutes, no live price was computed for half an hour, or the live
-- source fails. It is read with each SKU, and so ignores the pace, which is rarely lower than such a ceiling. SECURITY
-- DEFINER, because a view calls it as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.live_ahead() RETURNS interval
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c catalog_internal.live_ceiling;
  out_since timestamptz;
BEGIN
  SELECT * INTO c FROM catalog_internal.live_ceiling;
  SELECT outage_since INTO out_since FROM catalog_internal.live_plan;
  -- As isOutage in src/store/live/limits.ts.
  IF out_since IS NOT NULL AND greatest(out_since, c.credit_from) > clock_timestamp() - interval '1 hour'
     OR c.per_minute IS NOT NULL AND c.blocked_at < clock_timestamp() - interval '30 minutes' THEN
    RETURN NULL;
  ELSIF c.per_minute IS NULL THEN
    RETURN interval '0';
  END IF;
  RETURN (
    SELECT make_interval(secs => 60 / catalog_internal.live_rate() * (
      SELECT coalesce(sum((r ->> 'count')::float8), 0) FROM jsonb_array_elements(n.counts -> 'due') AS r WHERE r ->> 'reason' IN ('live', 'deferred')
    ))
    FROM catalog_internal.catalog_counts n WHERE n.counted_at > clock_timestamp() - interval '5 minutes'
  );
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.live_ahead() TO PUBLIC;
