-- A ring of hours, so many hours later, with so many more in the present one: 24 at most.
CREATE OR REPLACE FUNCTION catalog_internal.counted(ring integer[], hours integer, more integer) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT array_append('{}'::integer[], turned[1] + more) || turned[2:24]
  FROM (SELECT array_fill(0, ARRAY[least(24, greatest(0, hours))]) || ring AS turned) t;
END;

REVOKE ALL ON FUNCTION catalog_internal.counted(integer[], integer, integer) FROM PUBLIC;
