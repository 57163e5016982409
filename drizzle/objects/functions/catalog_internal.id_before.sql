-- The id after which the changes after a position begin.
CREATE OR REPLACE FUNCTION catalog_internal.id_before("position" bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT least(id_before.position - coalesce(max(shift) FILTER (WHERE first_id + shift <= id_before.position), 0),
    min(first_id) FILTER (WHERE first_id + shift > id_before.position) - 1)
  FROM catalog_internal.position_shifts
$$;

REVOKE ALL ON FUNCTION catalog_internal.id_before(bigint) FROM PUBLIC;
