-- The number of requests, of `most` in window and guard, that fit a window of this many seconds (src/pace/policy.ts,
-- sendsPerWindow). Computed in milliseconds, as there: in seconds the same division can end slightly below a whole
-- number.
CREATE OR REPLACE FUNCTION catalog_internal.sends_per_window(most double precision, rate_window double precision)
RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT greatest(1, floor(most * ms / (ms + least(500, ms / 20))) - 1)
  FROM (SELECT round(rate_window * 1000)) AS rate (ms)
);

REVOKE ALL ON FUNCTION catalog_internal.sends_per_window(double precision, double precision) FROM PUBLIC;
