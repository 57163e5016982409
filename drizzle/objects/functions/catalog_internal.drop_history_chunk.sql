-- Drops the oldest partition of price_history if all of it is older than the given number of seconds, but never the
-- one being written. Its positions are also those of the feed's other changes, and it may contain only these: a first
-- manifest of millions of SKUs moves no price. Of those, the newest hundred decide, because a late answer is written
-- with the time at which it was requested. One chunk per transaction: setval on the last dropped position is not
-- rolled back with the rest. 'in use' means that somebody is reading the partition, and it is dropped another time.
-- 'referred to' means that somebody's foreign key or view refers to it; it is dropped once nothing does, and a warning
-- names the reference. It is detached first, because Postgres drops no table that a foreign key references, not even
-- an empty one, but detaches one if no row of it is referenced. To check that, Postgres reads all tables that may
-- reference it, with the caller's rights, and subject to policies unless row_security is off. It does so under the
-- lock, so a referencing row is searched for before. The lock timeout is short, because nobody else can read while
-- this waits for the lock.
CREATE OR REPLACE FUNCTION catalog_internal.drop_history_chunk(kept_seconds double precision) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' SET row_security = off AS $$
DECLARE
  chunk record;
  is_old text;
  old boolean;
  said text;
BEGIN
  SELECT inhrelid::regclass AS name, substring(pg_get_expr(relpartbound, oid) FROM $re$ TO \('?(\d+)'?\)$re$)::bigint AS ends
    INTO chunk
    FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'catalog.price_history'::regclass
    ORDER BY ends LIMIT 1;
  IF chunk.ends > (SELECT last_value FROM catalog_internal.change_positions) THEN
    RETURN 'nothing old';
  END IF;
  is_old := format('SELECT NOT EXISTS (
      SELECT FROM (SELECT observed_at FROM catalog_internal.change_batches WHERE last_id < $2 ORDER BY last_id DESC LIMIT 100) b
      WHERE observed_at >= now() - make_interval(secs => $1)
    ) AND NOT EXISTS (
      SELECT FROM (SELECT observed_at FROM catalog.product_history WHERE id < $2 ORDER BY id DESC LIMIT 100) p
      WHERE observed_at >= now() - make_interval(secs => $1)
    ) AND NOT EXISTS (SELECT FROM %s WHERE observed_at >= now() - make_interval(secs => $1))', chunk.name);
  EXECUTE is_old INTO old USING kept_seconds, chunk.ends;
  IF old THEN
    said := catalog_internal.refers_to_history(chunk.name, chunk.ends);
    IF said IS NOT NULL THEN
      RAISE WARNING 'price_history is not dropped by HISTORY_RETENTION: %', said;
      RETURN 'referred to';
    END IF;
    LOCK TABLE ONLY catalog.price_history IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', chunk.name);
    -- Again: who was writing at the first check is done by now.
    EXECUTE is_old INTO old USING kept_seconds, chunk.ends;
  END IF;
  IF NOT old THEN
    RETURN 'nothing old';
  END IF;
  EXECUTE format('ALTER TABLE catalog.price_history DETACH PARTITION %s', chunk.name);
  EXECUTE format('DROP TABLE %s', chunk.name);
  DELETE FROM catalog_internal.history_chunks WHERE number < chunk.ends / 5000000;
  -- Never back: what is behind may have been given up for another reason.
  PERFORM setval('catalog_internal.dropped_positions', greatest(chunk.ends - 1, d.last_value)) FROM catalog_internal.dropped_positions d;
  RETURN 'dropped';
EXCEPTION
  WHEN lock_not_available OR undefined_table THEN
    RETURN 'in use';
  WHEN foreign_key_violation OR dependent_objects_still_exist THEN
    GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
    RAISE WARNING 'price_history is not dropped by HISTORY_RETENTION: something of yours refers to %', chunk.name
      USING DETAIL = said;
    RETURN 'referred to';
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.drop_history_chunk(double precision) FROM PUBLIC;
