-- A ring of at most 24 hourly counts, advanced by a number of hours, with a number added to the present hour.
CREATE OR REPLACE FUNCTION catalog_internal.counted(ring integer[], hours integer, more integer) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT array_append('{}'::integer[], turned[1] + more) || turned[2:24]
  FROM (SELECT array_fill(0, ARRAY[least(24, greatest(0, hours))]) || ring AS turned) t;
END;

REVOKE ALL ON FUNCTION catalog_internal.counted(integer[], integer, integer) FROM PUBLIC;
