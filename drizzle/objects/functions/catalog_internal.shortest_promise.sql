-- The shortest age (seconds) that can be promised for a live SKU if `rate` live prices a minute are computed
-- (live_rate): a shorter one leaves no time for a second request after a deferral, and if few are deferred, each costs
-- many times max_age.
CREATE OR REPLACE FUNCTION catalog_internal.shortest_promise(rate double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(CASE WHEN rate < 32 THEN 45 + 2 * catalog_internal.deferral_lead(rate) ELSE 11000 / (1 + rate) END, 0);
END;

REVOKE ALL ON FUNCTION catalog_internal.shortest_promise(double precision) FROM PUBLIC;
