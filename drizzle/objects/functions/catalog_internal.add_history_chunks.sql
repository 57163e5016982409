-- Partition n of price_history holds the positions from 5,000,000 n on. Makes the one that is being written,
-- where it is missing, and the next: for maintenance (`ahead`), which is told why it cannot be made, and for
-- a writer who may come to its end. That one goes on without it: what forbids it, or holds the table, is to
-- cost no answer before the positions are there. Whoever writes more than an answer says how many positions
-- are `needed`. Under the lock, because two sessions may find one missing at
-- once. Each is made as a table of its own and then attached, which locks nobody out; for the next nobody who
-- waits for the lock of the changes waits long.
CREATE OR REPLACE FUNCTION catalog_internal.add_history_chunks(ahead boolean DEFAULT false, needed bigint DEFAULT 0) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest bigint;
  chunk bigint;
  called text;
  patience text := current_setting('lock_timeout');
BEGIN
  SELECT last_value INTO newest FROM catalog_internal.change_positions;
  -- Two, or one, and all that are needed.
  FOR chunk IN SELECT n FROM generate_series(newest / 5000000, (newest + greatest(needed, CASE WHEN ahead THEN 5000000 ELSE 500000 END)) / 5000000) n LOOP
    called := format('price_history_%s', chunk);
    CONTINUE WHEN to_regclass('catalog_internal.' || called) IS NOT NULL;
    PERFORM catalog_internal.lock_changes();
    -- Made by another while this one waited: asked of the catalog itself, as a name once not found is remembered.
    CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'catalog_internal'::regnamespace AND relname = called);
    BEGIN
      IF chunk > (newest + needed) / 5000000 THEN
        PERFORM set_config('lock_timeout', '100ms', true);
      END IF;
      EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS)', called);
      EXECUTE format('ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.%I FOR VALUES FROM (%s) TO (%s)',
        called, chunk * 5000000, (chunk + 1) * 5000000);
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
