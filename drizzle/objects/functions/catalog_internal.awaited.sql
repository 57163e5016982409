-- Until when that is to be waited for which a clock that has been set back by so much wrote as `at`; `moment`
-- is now. Where it was written before the clock was ahead, that is too early by so much: waits are never
-- lengthened by a wrong clock.
CREATE OR REPLACE FUNCTION catalog_internal.awaited(at timestamptz, moment timestamptz, shift interval) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN at > moment AND at < 'infinity' THEN greatest(moment, at - shift) ELSE at END;
END;

REVOKE ALL ON FUNCTION catalog_internal.awaited(timestamptz, timestamptz, interval) FROM PUBLIC;
