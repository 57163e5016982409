-- Whether a requested pause stops all requests: nobody has ended it, and its end is still to come (src/pace/pause.ts:
-- holds). A single expression, and VOLATILE like delta_is_late.
CREATE OR REPLACE FUNCTION catalog_internal.pause_holds(p catalog_internal.pause) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT p.resumed_by IS NULL AND p.until > clock_timestamp();
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.pause_holds(catalog_internal.pause) TO PUBLIC;
