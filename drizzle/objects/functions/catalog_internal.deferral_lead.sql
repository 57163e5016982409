-- How many seconds earlier a live SKU comes first for its promise if `rate` live prices a minute are computed
-- (live_rate), so that it may be deferred, wait for the default DEFERRED_INTERVAL, and be requested again in time. At
-- low rates about one of `rate` + 1 is deferred; below 4, possibly twice in a row.
CREATE OR REPLACE FUNCTION catalog_internal.deferral_lead(rate double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN rate < 4 THEN 1050 WHEN rate < 32 THEN 390 ELSE 0 END::double precision;
END;

REVOKE ALL ON FUNCTION catalog_internal.deferral_lead(double precision) FROM PUBLIC;
