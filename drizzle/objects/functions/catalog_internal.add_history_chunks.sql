-- Partition n of price_history holds the positions from 5,000,000 n on. Creates the current one, if it is missing, and
-- the next: for maintenance (`ahead`), which is told why one cannot be created, and for a writer that may reach the
-- end of its chunk. The writer continues without it, because whatever forbids it, or locks the table, must not cost an
-- answer before the positions are needed. Whoever writes more than an answer passes how many positions are `needed`.
-- Runs under the lock, because two sessions may find the same chunk missing. Each chunk is created as a table of its
-- own and then attached, which blocks nobody; for the next one, nobody who waits for the lock of the changes waits
-- long. A detached chunk is attached again, because its rows have to go somewhere. A dropped one is created anew;
-- since its changes are lost, all positions before now are refused. It gets whatever sellers have added to
-- price_history (a CHECK, a generated column), or Postgres would not attach it.
CREATE OR REPLACE FUNCTION catalog_internal.add_history_chunks(ahead boolean DEFAULT false, needed bigint DEFAULT 0) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest bigint;
  chunk bigint;
  called text;
  attached boolean;
  patience text := current_setting('lock_timeout');
BEGIN
  SELECT last_value INTO newest FROM catalog_internal.change_positions;
  -- Two, or one, and all that are needed.
  FOR chunk IN SELECT n FROM generate_series(newest / 5000000, (newest + greatest(needed, CASE WHEN ahead THEN 5000000 ELSE 500000 END)) / 5000000) n LOOP
    called := format('price_history_%s', chunk);
    CONTINUE WHEN pg_partition_root(to_regclass('catalog_internal.' || called)) = 'catalog.price_history'::regclass;
    PERFORM catalog_internal.lock_changes();
    -- Made by another while this one waited: asked of the catalog itself, as a name once not found is remembered.
    SELECT relispartition INTO attached FROM pg_class WHERE relnamespace = 'catalog_internal'::regnamespace AND relname = called;
    CONTINUE WHEN attached;
    BEGIN
      IF chunk > (newest + needed) / 5000000 THEN
        PERFORM set_config('lock_timeout', '100ms', true);
      END IF;
      IF attached IS NULL THEN
        EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED)', called);
      END IF;
      EXECUTE format('CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON catalog_internal.%I
        FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied()', called);
      -- Also where it is emptied as a replica does (session_replication_role).
      EXECUTE format('ALTER TABLE catalog_internal.%I ENABLE ALWAYS TRIGGER history_is_emptied', called);
      EXECUTE format('ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.%I FOR VALUES FROM (%s) TO (%s)',
        called, chunk * 5000000, (chunk + 1) * 5000000);
      IF attached IS NULL AND chunk * 5000000 <= newest AND EXISTS (SELECT FROM catalog_internal.history_chunks WHERE number = chunk) THEN
        PERFORM setval('catalog_internal.dropped_positions', greatest(drawn.last_value, dropped.last_value))
        FROM catalog_internal.change_positions drawn, catalog_internal.dropped_positions dropped;
        RAISE WARNING 'catalog_internal.% was dropped by hand: who has not read all changes before now has to begin again', called;
      END IF;
      INSERT INTO catalog_internal.history_chunks VALUES (chunk) ON CONFLICT DO NOTHING;
      INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
      ON CONFLICT DO NOTHING;
      PERFORM set_config('lock_timeout', patience, true);
    EXCEPTION WHEN OTHERS THEN
      IF ahead OR chunk <= (newest + needed) / 5000000 THEN
        RAISE;
      END IF;
    END;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_history_chunks(boolean, bigint) FROM PUBLIC;
