-- Seconds without a checked delta after which it is late: two polls, and at least half an hour. catalog_state, health,
-- the doubt delta_late and its alert use this. A single expression, like snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.delta_late_after(s catalog_internal.settings) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT greatest(1800, 2 * s.delta_interval);
END;

REVOKE ALL ON FUNCTION catalog_internal.delta_late_after(catalog_internal.settings) FROM PUBLIC;
