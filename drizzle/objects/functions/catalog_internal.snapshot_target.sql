-- Seconds that a snapshot-priced SKU's price may be old: its sweep interval, or the metadata interval if that is
-- shorter or there are no sweeps. A single expression, so that the planner inlines it.
CREATE OR REPLACE FUNCTION catalog_internal.snapshot_target(s catalog_internal.settings) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN s.sweep_interval > 0 THEN least(s.sweep_interval, s.metadata_interval) ELSE s.metadata_interval END;
END;

REVOKE ALL ON FUNCTION catalog_internal.snapshot_target(catalog_internal.settings) FROM PUBLIC;
