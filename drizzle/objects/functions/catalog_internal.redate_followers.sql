-- Corrects times of followers, and of what they could not deliver, that were written by a clock that was ahead; and
-- when positions were found that only another database has issued.
CREATE OR REPLACE FUNCTION catalog_internal.redate_followers(shift interval) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
BEGIN
  UPDATE catalog_internal.followers SET updated_at = catalog_internal.happened(updated_at, moment, shift),
    failing_since = catalog_internal.happened(failing_since, moment, shift),
    clock_failing_since = catalog_internal.happened(clock_failing_since, moment, shift),
    last_at = catalog_internal.happened(last_at, moment, shift)
  WHERE greatest(updated_at, failing_since, clock_failing_since, last_at) > moment;
  UPDATE catalog_internal.dead_letters SET buried_at = catalog_internal.happened(buried_at, moment, shift),
    failing_since = catalog_internal.happened(failing_since, moment, shift)
  WHERE greatest(buried_at, failing_since) > moment;
  UPDATE catalog_internal.position_gaps SET at = catalog_internal.happened(at, moment, shift) WHERE at > moment;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.redate_followers(interval) FROM PUBLIC;
