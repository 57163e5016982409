-- The names of the due ledger's lanes, by number; the first is served first. DUE_LANES in src/store/ledger/due.ts has
-- the same order, and lane_of the reasons of each.
CREATE OR REPLACE FUNCTION catalog_internal.lane_names() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT ARRAY['changed', 'live', 'new', 'error', 'metadata', 'sweep'];
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.lane_names() TO PUBLIC;
