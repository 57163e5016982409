-- How many seconds after a request a SKU comes first again if its price must not get older than `max_age` seconds:
-- earlier by what the wait for its call, the answer, and a restart may take. The one place that knows how early. A
-- single expression, so that the planner inlines it.
CREATE OR REPLACE FUNCTION catalog_internal.promised_interval(max_age double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT max_age - greatest(8, least(45, max_age / 5));
END;

REVOKE ALL ON FUNCTION catalog_internal.promised_interval(double precision) FROM PUBLIC;
