-- position_before of sync.built_after. Without an argument, so that Postgres can evaluate it before it opens any
-- partition.
CREATE OR REPLACE FUNCTION catalog_internal.position_before_built() RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT catalog_internal.position_before(built_after) FROM catalog_internal.sync;
END;

REVOKE ALL ON FUNCTION catalog_internal.position_before_built() FROM PUBLIC;
