-- Partition n of price_history holds the positions from 5,000,000 n on. Makes the one that is being written and the
-- next, where they are missing; under the lock, because two sessions may find one missing at once. Each is made as a
-- table of its own and then attached, which locks nobody out.
CREATE OR REPLACE FUNCTION catalog_internal.add_history_chunks() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  chunk bigint;
  called text;
BEGIN
  FOR chunk IN SELECT last_value / 5000000 + ahead FROM catalog_internal.change_positions, generate_series(0, 1) ahead LOOP
    called := format('price_history_%s', chunk);
    CONTINUE WHEN to_regclass('catalog_internal.' || called) IS NOT NULL;
    PERFORM catalog_internal.lock_changes();
    -- Made by another while this one waited: asked of the catalog itself, as a name once not found is remembered.
    CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'catalog_internal'::regnamespace AND relname = called);
    EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS)', called);
    EXECUTE format('ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.%I FOR VALUES FROM (%s) TO (%s)',
      called, chunk * 5000000, (chunk + 1) * 5000000);
    INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_history_chunks() FROM PUBLIC;
