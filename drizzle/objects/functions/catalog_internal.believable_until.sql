-- Times later than this were written by a wrong clock. It is two seconds from now; while Postgres's clock is known to
-- be wrong, or what it wrote while it was ahead is being corrected, no time is believed. It uses the present time, not
-- that of the reader's transaction, which may have begun long ago.
CREATE OR REPLACE FUNCTION catalog_internal.believable_until() RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp() + interval '2 seconds';
BEGIN
  RETURN CASE
    WHEN EXISTS (
      SELECT FROM catalog_internal.clock
      WHERE high_water > moment OR set_back_seconds IS NOT NULL OR ahead_seconds IS NOT NULL
    ) THEN '-infinity'
    ELSE moment
  END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.believable_until() TO PUBLIC;
