-- A seller says that a SKU has probably moved. This only records it: it waits for nothing that anybody else writes or
-- locks, and nobody waits for the caller's transaction, however long it stays open. The mirror reads the hint after
-- the commit. Hints are counted by index, because a statement that gives thousands of hints keeps the plan of its
-- first, made when there were none to read. A SERIALIZABLE caller reads no hints, because orders that each give one
-- would make each other fail; for these, the size of the table on disk is the bound.
CREATE OR REPLACE FUNCTION catalog.hint(sku text, source text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  -- A hundred thousand have a tenth of that.
  most_bytes CONSTANT bigint := 128 * 1024 * 1024;
  named text := btrim(hint.source, E' \t\r\n');
BEGIN
  -- Names of the mirror's own sources are not a seller's to use.
  IF named IS NULL OR length(named) NOT BETWEEN 1 AND 60 OR named ~ '^(manifest|delta)[.]' OR NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = hint.sku) THEN
    RETURN false;
  END IF;
  BEGIN
    LOCK TABLE catalog_internal.hints IN ROW EXCLUSIVE MODE NOWAIT;
  EXCEPTION WHEN lock_not_available THEN
    RETURN false;
  END;
  IF current_setting('transaction_isolation') = 'serializable' THEN
    IF pg_relation_size('catalog_internal.hints') >= most_bytes THEN
      RETURN false;
    END IF;
    INSERT INTO catalog_internal.hints (sku, source, hinted_at) VALUES (hint.sku, named, clock_timestamp());
    RETURN true;
  END IF;
  IF EXISTS (SELECT FROM catalog_internal.hints h WHERE h.sku = hint.sku AND h.source = named) THEN
    RETURN true;
  END IF;
  -- As many as their ids are apart, at most: to count them would take longer with each.
  IF (SELECT id FROM catalog_internal.hints ORDER BY id DESC LIMIT 1) - (SELECT id FROM catalog_internal.hints ORDER BY id LIMIT 1) >= 100000 THEN
    RETURN false;
  END IF;
  INSERT INTO catalog_internal.hints (sku, source, hinted_at) VALUES (hint.sku, named, clock_timestamp());
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION catalog.hint(text, text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.hint(text, text) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.hint(text, text) IS 'Tells the mirror that a SKU has probably moved, for whoever has seen a sign of it. source is a name of your choice, of 60 characters at most: how often each source is right is learned (catalog.hint_sources). Names that begin with manifest. or delta. are the mirror''s own. False: it was not taken, as the SKU is not known, the source has no such name, 100,000 hints wait, or somebody keeps them locked.';
