-- Whether a SKU has been reported to have changed, and was not asked for since; also one that is out of
-- scope, which nobody asks for. False where the ledger does not know it. A single expression, as
-- snapshot_target. catalog.sku_trust has it written out: each function that its planner has to see through is
-- paid for with every SKU that is looked up.
CREATE OR REPLACE FUNCTION catalog_internal.is_reported(d catalog_internal.due, moment timestamptz DEFAULT statement_timestamp()) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(coalesce(d.outside_due_at, d.due_at) <= moment AND d.reason = 'changed', false);
END;

REVOKE ALL ON FUNCTION catalog_internal.is_reported(catalog_internal.due, timestamptz) FROM PUBLIC;
