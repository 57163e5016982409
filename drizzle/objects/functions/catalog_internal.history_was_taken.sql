-- Whether a table of the feed was emptied, dropped, detached or rewritten since the reader's snapshot: its row in
-- pg_class is that of the snapshot, while functions report the present. To be called after reading the history.
CREATE OR REPLACE FUNCTION catalog_internal.history_was_taken() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (
    SELECT FROM pg_class c
    WHERE c.oid IN ('catalog.product_history'::regclass, 'catalog_internal.change_batches'::regclass)
      AND pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode
    UNION ALL
    SELECT FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
    WHERE inhparent = 'catalog.price_history'::regclass
      AND (pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode OR pg_partition_root(c.oid) IS DISTINCT FROM inhparent::regclass)
  )
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_was_taken() FROM PUBLIC;
