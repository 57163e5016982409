-- Requests a minute that the pacer allows now: what it resumed with, grown since (src/pace/policy.ts, ceilingAt), and
-- what the account's other services leave it (ownMost). It only reads their sequences, which a parallel worker can do
-- too.
CREATE OR REPLACE FUNCTION catalog_internal.present_ceiling(p catalog_internal.pace) RETURNS real
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (least(
      catalog_internal.sends_per_window(s.rate_share, s.rate_window),
      greatest(1, p.ceiling) + greatest(5, s.rate_share / 24.0)
        * greatest(0, extract(epoch FROM clock_timestamp() - p.raised_at)) / s.rate_window,
      CASE WHEN others.sent > 0 THEN greatest(1, s.rate_floor,
        catalog_internal.sends_per_window(s.rate_limit, s.rate_window) - others.sent - ceil(s.rate_limit * 0.05)) END
    ) * 60 / s.rate_window)::real
  FROM catalog_internal.settings s
  CROSS JOIN LATERAL catalog_internal.others_sent(make_interval(secs => s.rate_window + least(0.5, s.rate_window / 20))) AS others
  WHERE p.ceiling IS NOT NULL
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.present_ceiling(catalog_internal.pace) TO PUBLIC;
