-- Whether the last delta check is older than delta_late_after allows, or dated in the future, which tells
-- nothing of when it was: a clock was set; or whether the manifest route refutes what the delta says, because
-- it names a newer snapshot than the delta leads to, or other counts of the same one. Null before the first
-- baseline. Health, catalog_state and the doubt delta_late go by this. Writers date by the beginning of their
-- transaction, which may be after that of the reader: hence the present time, and with it VOLATILE, as the
-- planner sees through no STABLE function that calls clock_timestamp().
CREATE OR REPLACE FUNCTION catalog_internal.delta_is_late(s catalog_internal.sync, g catalog_internal.settings) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT s.delta_doubt IS NOT DISTINCT FROM 'behind' OR s.catalog_differs_at IS NOT NULL OR coalesce(s.delta_checked_at, s.manifest_applied_at)
    NOT BETWEEN clock_timestamp() - make_interval(secs => catalog_internal.delta_late_after(g)) AND clock_timestamp() + interval '1 minute';
END;

REVOKE ALL ON FUNCTION catalog_internal.delta_is_late(catalog_internal.sync, catalog_internal.settings) FROM PUBLIC;
