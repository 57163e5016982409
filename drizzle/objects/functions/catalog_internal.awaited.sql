-- A time to wait for, corrected after a clock was set back by some amount: `at` is what that clock wrote, `moment` is
-- now. If it was written before the clock was ahead, the result is too early by that amount: a wrong clock never
-- lengthens a wait.
CREATE OR REPLACE FUNCTION catalog_internal.awaited(at timestamptz, moment timestamptz, shift interval) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN at > moment AND at < 'infinity' THEN greatest(moment, at - shift) ELSE at END;
END;

REVOKE ALL ON FUNCTION catalog_internal.awaited(timestamptz, timestamptz, interval) FROM PUBLIC;
