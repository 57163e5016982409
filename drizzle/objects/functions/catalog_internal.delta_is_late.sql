-- Whether the last delta check is older than delta_late_after allows; or dated in the future, so that a clock was set
-- and nobody knows when it was; or whether the manifest route refutes the delta, because it names a newer snapshot
-- than the delta leads to, or other counts of the same one. Null before the first baseline. Health, catalog_state and
-- the doubt delta_late use this. Writers date by the start of their transaction, which may be after the reader's:
-- therefore the present time is used, and the function is VOLATILE, because the planner does not inline a STABLE
-- function that calls clock_timestamp().
CREATE OR REPLACE FUNCTION catalog_internal.delta_is_late(s catalog_internal.sync, g catalog_internal.settings) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT s.delta_doubt IS NOT DISTINCT FROM 'behind' OR s.catalog_differs_at IS NOT NULL OR coalesce(s.delta_checked_at, s.manifest_applied_at)
    NOT BETWEEN clock_timestamp() - make_interval(secs => catalog_internal.delta_late_after(g)) AND clock_timestamp() + interval '1 minute';
END;

REVOKE ALL ON FUNCTION catalog_internal.delta_is_late(catalog_internal.sync, catalog_internal.settings) FROM PUBLIC;
