-- Deletes what belongs to deleted rows of catalog.skus, whoever deletes them: ledger, prices (with a row in their
-- history), products, rates, draws, hints, requests, kept promises. A trigger rather than foreign keys, which would
-- check each row that a baseline or an answer inserts, and lock its SKU. The ledger is locked in order of sku, as
-- everyone locks it; history is written last. Uses an array rather than a join with the deleted rows: if a table was
-- empty when it was last analyzed, Postgres may assume one row and read all deleted ones for each.
CREATE OR REPLACE FUNCTION catalog_internal.forget_with_skus() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  moves bigint;
  deleted text[];
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    TRUNCATE catalog_internal.due, catalog_internal.unreported_moves, catalog_internal.live_rates, catalog_internal.random_looks, catalog_internal.live_backlog, catalog_internal.hints, catalog_internal.waiting_hints, catalog_internal.refresh_requests, catalog_internal.promise_cases, catalog.products, catalog.prices;
    -- What a reader knows is gone, and nothing tells it: all positions are refused.
    PERFORM catalog_internal.lock_changes();
    -- Of prices from before nothing is known, and of those from now on everything.
    INSERT INTO catalog_internal.history_milestones (position, at) VALUES (nextval('catalog_internal.change_positions'), clock_timestamp())
    ON CONFLICT (position) DO UPDATE SET at = excluded.at;
    PERFORM setval('catalog_internal.dropped_positions', last_value) FROM catalog_internal.change_positions;
    RETURN NULL;
  END IF;
  deleted := ARRAY(SELECT sku FROM gone);
  PERFORM FROM catalog_internal.due WHERE sku = ANY (deleted) ORDER BY sku FOR UPDATE;
  DELETE FROM catalog_internal.due WHERE due.sku = ANY (deleted);
  DELETE FROM catalog_internal.unreported_moves WHERE unreported_moves.sku = ANY (deleted);
  DELETE FROM catalog_internal.live_rates WHERE live_rates.sku = ANY (deleted);
  DELETE FROM catalog_internal.random_looks WHERE random_looks.sku = ANY (deleted);
  DELETE FROM catalog_internal.live_backlog WHERE live_backlog.sku = ANY (deleted);
  DELETE FROM catalog_internal.hints WHERE hints.sku = ANY (deleted);
  DELETE FROM catalog_internal.waiting_hints WHERE waiting_hints.sku = ANY (deleted);
  DELETE FROM catalog_internal.refresh_requests WHERE refresh_requests.sku = ANY (deleted);
  DELETE FROM catalog_internal.promise_cases WHERE promise_cases.sku = ANY (deleted);
  DELETE FROM catalog.products WHERE products.sku = ANY (deleted);
  SELECT count(*) INTO moves FROM catalog.prices WHERE prices.sku = ANY (deleted);
  IF moves > 0 THEN
    PERFORM catalog_internal.lock_changes(), catalog_internal.add_history_chunks(needed => moves);
    WITH priced AS (DELETE FROM catalog.prices WHERE prices.sku = ANY (deleted) RETURNING prices.sku, prices.size, prices.price)
    INSERT INTO catalog.price_history (sku, size, old_price, new_price, observed_at)
    SELECT sku, size, price, NULL, now() FROM priced WHERE price IS NOT NULL ORDER BY sku, size;
  END IF;
  PERFORM catalog_internal.add_changes('sku', g.skus, NULL, NULL, ARRAY['state'], ARRAY[g.state], ARRAY[NULL], now())
  FROM (SELECT state, array_agg(sku ORDER BY sku) AS skus FROM gone GROUP BY state ORDER BY state) g;
  PERFORM catalog_internal.notify_changes() WHERE EXISTS (SELECT FROM gone);
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.forget_with_skus() FROM PUBLIC;

CREATE OR REPLACE TRIGGER forget_with_skus AFTER DELETE ON catalog.skus REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.forget_with_skus();
CREATE OR REPLACE TRIGGER forget_all AFTER TRUNCATE ON catalog.skus
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.forget_with_skus();

-- Also where rows are deleted as a replica does (session_replication_role).
ALTER TABLE catalog.skus ENABLE ALWAYS TRIGGER forget_with_skus;
ALTER TABLE catalog.skus ENABLE ALWAYS TRIGGER forget_all;
