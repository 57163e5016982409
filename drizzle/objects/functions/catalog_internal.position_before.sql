-- Everything observed since a moment has a greater position than this, so a query for a SKU's moves since then leaves
-- all older partitions alone. The hour allows for a clock that was set back.
CREATE OR REPLACE FUNCTION catalog_internal.position_before(moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT coalesce(max(position), -1) FROM catalog_internal.history_milestones WHERE at < moment - interval '1 hour';
END;

REVOKE ALL ON FUNCTION catalog_internal.position_before(timestamptz) FROM PUBLIC;
