-- The lane that a reason belongs to; a call is packed from the lowest number on (src/sync/reprice/packing.ts).
CREATE OR REPLACE FUNCTION catalog_internal.lane_of(reason text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE reason
    WHEN 'changed' THEN 1 WHEN 'watched' THEN 1 WHEN 'refresh' THEN 1 WHEN 'doubted' THEN 1
    WHEN 'live' THEN 2 WHEN 'unlisted' THEN 2 WHEN 'missed' THEN 2
    WHEN 'new' THEN 3 WHEN 'absent' THEN 3 WHEN 'removed' THEN 3 WHEN 'clock' THEN 3
    WHEN 'error' THEN 4
    WHEN 'metadata' THEN 5 WHEN 'again' THEN 5
    ELSE 6
  END::smallint;
END;

REVOKE ALL ON FUNCTION catalog_internal.lane_of(text) FROM PUBLIC;
