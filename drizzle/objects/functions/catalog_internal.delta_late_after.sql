-- Seconds without a checked delta from which it is late: two polls, and half an hour at least. catalog_state,
-- health, the doubt delta_late and the alert on it go by this. A single expression, as snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.delta_late_after(s catalog_internal.settings) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT greatest(1800, 2 * s.delta_interval);
END;

REVOKE ALL ON FUNCTION catalog_internal.delta_late_after(catalog_internal.settings) FROM PUBLIC;
