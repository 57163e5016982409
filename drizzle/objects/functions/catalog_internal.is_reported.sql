-- Whether a SKU was reported to have changed and has not been requested since; also one that is out of scope, which
-- nobody requests. False if the ledger does not know it. A single expression, like snapshot_target. catalog.sku_trust
-- contains a copy, because every function that its planner has to inline adds to the cost of each lookup of a SKU.
CREATE OR REPLACE FUNCTION catalog_internal.is_reported(d catalog_internal.due, moment timestamptz DEFAULT statement_timestamp()) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(coalesce(d.outside_due_at, d.due_at) <= moment AND d.reason = 'changed', false);
END;

REVOKE ALL ON FUNCTION catalog_internal.is_reported(catalog_internal.due, timestamptz) FROM PUBLIC;
