-- Like promised_interval, for a SKU that counts as live if `rate` live prices a minute are computed (live_rate; null:
-- no ceiling is known, or it does not count as live): earlier by the time that a deferral may take.
CREATE OR REPLACE FUNCTION catalog_internal.live_promised_interval(max_age double precision, rate double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT greatest(catalog_internal.promised_interval(max_age) - catalog_internal.deferral_lead(rate), catalog_internal.promised_interval(max_age) / 2);
END;

REVOKE ALL ON FUNCTION catalog_internal.live_promised_interval(double precision, double precision) FROM PUBLIC;
