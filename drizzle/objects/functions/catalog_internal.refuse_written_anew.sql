-- Fails where one of the tables, or a partition of one, was written anew since the snapshot of the reader, as an ALTER TABLE
-- does that rewrites it: its rows are then none of that snapshot, so whoever waited for it has read an empty table. To
-- be asked after the reading, as history_was_taken. In PL/pgSQL, which keeps the plan: it is asked with each reading.
CREATE OR REPLACE FUNCTION catalog_internal.refuse_written_anew(tables regclass[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (
    SELECT FROM (SELECT unnest(tables)::oid UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = ANY (tables)) t(oid)
    JOIN pg_class c USING (oid)
    WHERE pg_relation_filenode(c.oid) <> c.relfilenode
  ) THEN
    RAISE EXCEPTION 'a table was rewritten after this transaction began, which does not see its rows'
      USING ERRCODE = 'serialization_failure', HINT = 'Try again in a new transaction.';
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refuse_written_anew(regclass[]) FROM PUBLIC;
