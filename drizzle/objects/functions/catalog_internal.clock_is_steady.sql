-- Whether a daemon has watched Postgres's clock for an hour without a jump; before that nothing is dropped because of
-- its age.
CREATE OR REPLACE FUNCTION catalog_internal.clock_is_steady() RETURNS boolean
LANGUAGE sql STABLE
RETURN (
  SELECT set_back_seconds IS NULL AND ahead_seconds IS NULL AND steady_since <= clock_timestamp() - interval '1 hour'
    AND high_water BETWEEN clock_timestamp() - interval '1 hour' AND clock_timestamp() + interval '2 seconds'
  FROM catalog_internal.clock
);

REVOKE ALL ON FUNCTION catalog_internal.clock_is_steady() FROM PUBLIC;
