-- What catalog.changes calls the position of a row with this id: positions skip what another history may have issued
-- (follow_lineage), and ids do not.
CREATE OR REPLACE FUNCTION catalog_internal.position_of(id bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT position_of.id + coalesce((SELECT max(shift) FROM catalog_internal.position_shifts WHERE first_id <= position_of.id), 0)
$$;

REVOKE ALL ON FUNCTION catalog_internal.position_of(bigint) FROM PUBLIC;
