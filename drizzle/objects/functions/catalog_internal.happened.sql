-- The time of an event, corrected after a clock was set back by some amount: `at` is what that clock wrote, and
-- nothing has happened after `moment`, which is now.
CREATE OR REPLACE FUNCTION catalog_internal.happened(at timestamptz, moment timestamptz, shift interval) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN at > moment AND at < 'infinity' THEN least(moment, at - shift) ELSE at END;
END;

REVOKE ALL ON FUNCTION catalog_internal.happened(timestamptz, timestamptz, interval) FROM PUBLIC;
