-- An object after those of its members that changed got their new values, given the old and the new ones; includes
-- members of members. A member that no longer exists is only in the first.
CREATE OR REPLACE FUNCTION catalog_internal.merged(held jsonb, were jsonb, are jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF jsonb_typeof(held) IS DISTINCT FROM 'object' OR jsonb_typeof(were) IS DISTINCT FROM 'object' OR jsonb_typeof(are) IS DISTINCT FROM 'object' THEN
    RETURN are;
  END IF;
  RETURN held - ARRAY(SELECT jsonb_object_keys(were) EXCEPT SELECT jsonb_object_keys(are))
    || coalesce((SELECT jsonb_object_agg(m.key, catalog_internal.merged(held -> m.key, were -> m.key, m.value)) FROM jsonb_each(are) m), '{}');
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.merged(jsonb, jsonb, jsonb) FROM PUBLIC;
