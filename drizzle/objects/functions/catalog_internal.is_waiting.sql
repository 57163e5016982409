-- Whether a SKU waits because the partner has deferred it, or for its second answer: until then it does not count as
-- due, although its due time has come. After an error it is due. A single expression, like snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.is_waiting(d catalog_internal.due, moment timestamptz DEFAULT statement_timestamp()) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT d.claim IS NULL AND (d.deferrals > 0 OR d.failures = 0 AND (d.doubt IS NOT NULL OR d.reason = 'doubted')) AND coalesce(d.held_until > moment, false);
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.is_waiting(catalog_internal.due, timestamptz) TO PUBLIC;
