-- The latest time that Postgres's clock is known to have shown: as recorded by a daemon, or as the last requests,
-- pause, task runs and syncs were dated, which may have happened between two checks of a clock that was ahead for a
-- moment.
CREATE OR REPLACE FUNCTION catalog_internal.clock_high_water() RETURNS timestamptz
LANGUAGE sql STABLE
RETURN (
  SELECT greatest(
    high_water,
    (SELECT max(sent_at) FROM catalog_internal.pace_sends),
    (SELECT set_at FROM catalog_internal.pause),
    (SELECT max(greatest(started_at, finished_at)) FROM catalog_internal.tasks),
    (SELECT greatest(manifest_applied_at, delta_checked_at, snapshot_moved_at, catalog_checked_at, token_at) FROM catalog_internal.sync)
  )
  FROM catalog_internal.clock
);

REVOKE ALL ON FUNCTION catalog_internal.clock_high_water() FROM PUBLIC;
