-- Names the row of others' tables that refers to the partition of price_history whose positions end there; null: none
-- does. What cannot be read may refer to it. It only compares the partition's key, which every foreign key contains:
-- the rest merely has to exist (MATCH SIMPLE). The caller turns row_security off, so that a policy raises an error
-- instead of hiding rows.
CREATE OR REPLACE FUNCTION catalog_internal.refers_to_history(chunk regclass, ends bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  reference record;
  refers boolean;
BEGIN
  FOR reference IN
    SELECT format('foreign key %I of %s', k.conname, k.conrelid::regclass) AS name, format(
      'SELECT EXISTS (SELECT FROM %s %s r JOIN %s c ON c.id = r.%I WHERE r.%4$I >= $1 AND r.%4$I < $2 AND num_nulls(%5$s) = 0)',
      -- A key of a table that others inherit from is of its own rows.
      CASE t.relkind WHEN 'p' THEN '' ELSE 'ONLY' END, k.conrelid::regclass, chunk, own.id, own.columns) AS query
    FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid, LATERAL (
      SELECT string_agg(format('r.%I', mine.attname), ', ') AS columns, max(mine.attname::text) FILTER (WHERE its.attname = 'id') AS id
      FROM unnest(k.conkey, k.confkey) AS pair(mine, its)
      JOIN pg_attribute mine ON mine.attrelid = k.conrelid AND mine.attnum = pair.mine
      JOIN pg_attribute its ON its.attrelid = k.confrelid AND its.attnum = pair.its
    ) own
    WHERE k.contype = 'f' AND k.conparentid = 0 AND k.confrelid IN ('catalog.price_history'::regclass, chunk)
  LOOP
    BEGIN
      EXECUTE reference.query INTO refers USING ends - 5000000, ends;
    EXCEPTION WHEN insufficient_privilege THEN
      RETURN format('whether %s refers to %s is not known (%s): grant %I USAGE on the schema and SELECT on the table, and BYPASSRLS where it has policies',
        reference.name, chunk, SQLERRM, current_user);
    END;
    IF refers THEN
      RETURN format('a row refers to %s by %s', chunk, reference.name);
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refers_to_history(regclass, bigint) FROM PUBLIC;
