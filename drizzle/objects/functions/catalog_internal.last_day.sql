-- What a ring of hourly counts contains for the last day; its first hour began at `hour`, when it was last written.
CREATE OR REPLACE FUNCTION catalog_internal.last_day(ring integer[], hour timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(sum(n), 0)::bigint FROM unnest(ring) WITH ORDINALITY AS r(n, place)
  WHERE place <= 24 - floor(extract(epoch FROM clock_timestamp() - hour) / 3600);
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.last_day(integer[], timestamptz) TO PUBLIC;
