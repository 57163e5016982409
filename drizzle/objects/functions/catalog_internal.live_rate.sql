-- Live prices a minute that the partner computes, as far as known: its ceiling as learned; if it has computed none for
-- more than three minutes, less than one in that time. Null: no ceiling has been reached. The one place that decides
-- what can be counted on, for promises and for the estimate of the next refresh.
CREATE OR REPLACE FUNCTION catalog_internal.live_rate() RETURNS double precision
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT least(per_minute, CASE WHEN blocked_at < clock_timestamp() - interval '3 minutes' THEN 60 / extract(epoch FROM clock_timestamp() - blocked_at)::double precision END)
    FROM catalog_internal.live_ceiling WHERE per_minute IS NOT NULL
  );
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.live_rate() FROM PUBLIC;
