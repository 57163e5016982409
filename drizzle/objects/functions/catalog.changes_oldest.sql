-- The newest position that was dropped, never one inside a gap (follow_lineage).
CREATE OR REPLACE FUNCTION catalog.changes_oldest() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT resumed_at FROM catalog_internal.position_gaps WHERE forked_at < d.oldest AND d.oldest < resumed_at), d.oldest)
  FROM (SELECT catalog_internal.position_of(catalog_internal.dropped_to()) AS oldest) d
$$;

REVOKE ALL ON FUNCTION catalog.changes_oldest() FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_oldest() TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_oldest() IS 'The oldest position that catalog.changes takes.';
