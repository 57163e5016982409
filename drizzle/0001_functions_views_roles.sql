-- One row each: the sync token, the settings that SQL reads. The pace row is made by the pacer, which knows the limits.
INSERT INTO catalog_internal.sync DEFAULT VALUES;
--> statement-breakpoint
INSERT INTO catalog_internal.settings DEFAULT VALUES;
--> statement-breakpoint
INSERT INTO catalog_internal.tasks (task) VALUES ('manifest'), ('delta'), ('catalog-check'), ('reprice'), ('metadata'), ('maintenance');
--> statement-breakpoint

-- Room for heap-only updates where a look only moves timestamps, and early vacuums on the tables that churn.
ALTER TABLE catalog.skus SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
ALTER TABLE catalog.products SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
ALTER TABLE catalog.prices SET (fillfactor = 95, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
ALTER TABLE catalog_internal.due SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
--> statement-breakpoint
ALTER TABLE catalog_internal.pace_sends SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
--> statement-breakpoint
ALTER TABLE catalog_internal.pace SET (fillfactor = 10);
--> statement-breakpoint
ALTER TABLE catalog_internal.tasks SET (fillfactor = 10);
--> statement-breakpoint

-- Which lane a reason travels in; the planner (sync/reprice-plan.ts) serves lower numbers first.
CREATE FUNCTION catalog_internal.lane_of(reason text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE reason
    WHEN 'changed' THEN 1 WHEN 'watched' THEN 1 WHEN 'refresh' THEN 1
    WHEN 'live' THEN 2
    WHEN 'new' THEN 3 WHEN 'absent' THEN 3 WHEN 'removed' THEN 3
    WHEN 'error' THEN 4
    WHEN 'metadata' THEN 5
    ELSE 6
  END::smallint
$$;
--> statement-breakpoint

-- The one way to mark SKUs due. An owed row keeps its place (the earlier due_at) and its better lane; the generation
-- moves so that no answer to an earlier request settles this mark; a deferred SKU's wait is not shortened, while an
-- erring SKU is tried again at once. counts_as_live null leaves the live flag as it is.
CREATE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE sql AS $$
  WITH marked AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(skus) AS s
    ORDER BY s
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE WHEN d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason ELSE excluded.reason END,
      live = coalesce(counts_as_live, d.live),
      due_at = least(d.due_at, excluded.due_at),
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND d.failures > 0 THEN NULL ELSE d.held_until END
    RETURNING 1
  )
  SELECT count(*) FROM marked
$$;
--> statement-breakpoint

-- A watched SKU is looked at next, and mirrored although no manifest may list it. Runs with the daemon's rights:
-- catalog_watcher has none on the ledger.
CREATE FUNCTION catalog_internal.watch_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM added ORDER BY sku ON CONFLICT DO NOTHING;
  PERFORM 1 FROM catalog.skus WHERE sku IN (SELECT sku FROM added) ORDER BY sku FOR UPDATE;
  PERFORM catalog_internal.mark_due((SELECT array_agg(sku) FROM added), 'watched');
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER watch_added AFTER INSERT ON catalog.watchlist
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_added();
--> statement-breakpoint

CREATE VIEW catalog.current_prices AS
SELECT p.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       s.price_source, s.priced_at, p.changed_at,
       coalesce(d.due_at <= now() AND d.reason <> 'metadata', false) AS stale
FROM catalog.prices p
JOIN catalog.skus s USING (sku)
LEFT JOIN catalog.products pr USING (sku)
LEFT JOIN catalog_internal.due d USING (sku);
--> statement-breakpoint

-- 'none' before the first baseline; 'stale' while the catalog cannot be trusted to report changes; else 'ok'. A token
-- that moved proves the builder alive until the next look at the manifest route. Runs with the daemon's rights: a view
-- reads its tables as its owner, but calls its functions as the reader, who may not read the settings.
CREATE FUNCTION catalog_internal.catalog_state(s catalog_internal.sync) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN s.manifest_applied_at IS NULL THEN 'none'
    WHEN s.catalog_fault IS NOT NULL THEN 'stale'
    WHEN s.chain_broken_at IS NOT NULL AND s.manifest_refused IS NOT NULL THEN 'stale'
    WHEN greatest(s.snapshot_generated_at, s.snapshot_moved_at)
         < now() - make_interval(secs => (SELECT catalog_stale_after FROM catalog_internal.settings)) THEN 'stale'
    ELSE 'ok'
  END
$$;
--> statement-breakpoint

CREATE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus, k.pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       p.ceiling::real AS requests_per_minute,
       CASE WHEN p.silent_until > now() THEN p.silent_until END AS backing_off_until,
       catalog_internal.catalog_state(s) AS catalog_state
FROM catalog_internal.sync s
LEFT JOIN catalog_internal.pace p ON true
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= now() AND (deferrals = 0 OR held_until IS NULL OR claim IS NOT NULL OR held_until <= now())) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= now()) AS oldest_due_at
  FROM catalog_internal.due
) d;
--> statement-breakpoint

COMMENT ON SCHEMA catalog IS 'The mirrored catalog: read it, and write to watchlist. Everything else is written by catalog-mirror.';
--> statement-breakpoint
COMMENT ON SCHEMA catalog_internal IS 'What catalog-mirror keeps for itself. Not for queries: it changes without notice.';
--> statement-breakpoint
COMMENT ON TABLE catalog.skus IS 'Every SKU ever seen, one row each, with what the catalog says of it.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.state IS 'pending: not priced yet; priced: the partner answered with a record (perhaps without sizes); not_found: the price routes say 0009; removed: the delta reported it removed.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.price_source IS 'snapshot: the delta reports its price moves; live: it does not, the mirror looks by itself; null: unknown.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.hash IS 'Fingerprint from the manifest: compare for equality only. Null for live SKUs, and from the moment a delta reports the SKU until the next manifest.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.sizes IS 'Number of sizes that the manifest states.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.in_manifest IS 'Listed by the newest applied manifest, as corrected by the deltas since. False does not mean that the SKU does not exist.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.updated_at IS 'updated_at of the manifest line.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.first_seen_at IS 'When the mirror first heard of the SKU.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.priced_at IS 'When the partner last answered for this SKU: with a record or with 0009.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.removed_at IS 'When the delta reported the SKU removed; null again once the price routes answer with a record.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.asked_at IS 'When the request behind priced_at was sent.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.first_priced_at IS 'When the partner first answered with a record. price_history begins after that.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.reported_at IS 'When a delta last reported the SKU.';
--> statement-breakpoint
COMMENT ON TABLE catalog.prices IS 'Lowest price of each size of each priced SKU. SKUs that are not_found or removed have no rows here.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.prices.size IS 'Size key as the partner names it; products.size_map_size_type says what it means.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.prices.price IS 'Whole baht (THB); null where the partner''s entry carries no readable price.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.prices.entry IS 'The partner''s size_map entry as it came; null where it is just the number in price.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.prices.changed_at IS 'When the mirror saw the price change (or the size appear).';
--> statement-breakpoint
COMMENT ON TABLE catalog.products IS 'Product metadata of every SKU that was ever priced. Kept when the SKU goes.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.size_type IS 'product.size_type.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.size_map_size_type IS 'size_map.size_type: what the size keys in catalog.prices mean. A correction changes the meaning of every size without any price moving.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.product IS 'The partner''s product object as it came.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.refreshed_at IS 'When the metadata was last read.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.changed_at IS 'When the mirror last saw any of it change.';
--> statement-breakpoint
COMMENT ON TABLE catalog.price_history IS 'Every observed price move, append-only. No rows for the first observation of a SKU. old_price null: the size appeared; new_price null: it went.';
--> statement-breakpoint
COMMENT ON TABLE catalog.product_history IS 'Every observed metadata change, append-only; field names the column of catalog.products.';
--> statement-breakpoint
COMMENT ON TABLE catalog.watchlist IS 'Yours: SKUs that matter most to you. Inserting one gets it looked at next, whether or not the catalog lists it.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.watchlist.weight IS 'How much more than an ordinary SKU (1) this one matters.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.watchlist.note IS 'Free text of your own.';
--> statement-breakpoint
COMMENT ON VIEW catalog.current_prices IS 'Prices with what they mean and how far to trust them: use rows WHERE NOT stale and with a priced_at recent enough for you.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.stale IS 'True while a re-price is known to be owed.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.size_type IS 'What the size means (size_map.size_type).';
--> statement-breakpoint
COMMENT ON VIEW catalog.sync_status IS 'How the mirror stands, one row.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.due_skus IS 'SKUs owed a look now; a deferred SKU counts once its wait is over.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.catalog_state IS 'ok; stale: the catalog routes cannot be trusted to report changes, SKUs are re-priced by age; none: no baseline yet.';
--> statement-breakpoint

-- Roles are shared by the whole cluster: another mirror may have made them, at this very moment even, and a daemon
-- without the right to create roles leaves it to the administrator.
DO $$
DECLARE role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['catalog_reader', 'catalog_watcher'] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
    EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
    END;
  END LOOP;
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA catalog TO catalog_reader;
    GRANT SELECT ON ALL TABLES IN SCHEMA catalog TO catalog_reader;
    ALTER DEFAULT PRIVILEGES IN SCHEMA catalog GRANT SELECT ON TABLES TO catalog_reader;
  END IF;
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA catalog TO catalog_watcher;
    GRANT SELECT, INSERT, UPDATE, DELETE ON catalog.watchlist TO catalog_watcher;
  END IF;
END
$$;
