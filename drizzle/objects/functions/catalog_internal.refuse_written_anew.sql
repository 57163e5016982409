-- Fails if one of the tables, or a partition of one, was rewritten since the reader's snapshot, for example by ALTER
-- TABLE: its rows are not visible to that snapshot, so whoever waited for it has read an empty table. To be called
-- after reading, like history_was_taken. In PL/pgSQL, which keeps the plan, because it is called with each reading.
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
