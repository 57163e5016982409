-- The newest position that was dropped. A sequence holds it, because every snapshot sees the same of it.
CREATE OR REPLACE FUNCTION catalog.changes_oldest() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT last_value FROM catalog_internal.dropped_positions
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
