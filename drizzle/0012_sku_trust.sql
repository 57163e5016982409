ALTER TABLE "catalog_internal"."settings" ADD COLUMN "delta_interval" double precision DEFAULT 300 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."settings" ADD COLUMN "bulk_max_skus" integer DEFAULT 100 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."settings" ADD COLUMN "bulk_live_budget" integer DEFAULT 5 NOT NULL;--> statement-breakpoint
CREATE INDEX "products_brand_model" ON "catalog"."products" USING btree (left("brand", 200),left("model", 200));--> statement-breakpoint

-- As before (0001), planned once for a session, as what follows calls it for every query. It only reads, so whoever asks may do so
-- with several workers.
CREATE OR REPLACE FUNCTION catalog_internal.catalog_state(s catalog_internal.sync) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE
    WHEN s.manifest_applied_at IS NULL THEN 'none'
    WHEN s.catalog_fault IS NOT NULL THEN 'stale'
    WHEN s.chain_broken_at IS NOT NULL AND s.manifest_refused IS NOT NULL THEN 'stale'
    WHEN greatest(s.snapshot_generated_at, s.snapshot_moved_at)
         < now() - make_interval(secs => (SELECT catalog_stale_after FROM catalog_internal.settings)) THEN 'stale'
    ELSE 'ok'
  END;
END
$$;
--> statement-breakpoint
ALTER FUNCTION catalog_internal.present_ceiling(catalog_internal.pace) PARALLEL SAFE;
--> statement-breakpoint

-- What the trust in a price hangs on that is the same for all SKUs: asked once for a query. In PL/pgSQL, which plans a statement once
-- for a session: planning is most of what looking at one SKU costs. Row by row, as the planner does not know that these tables have one
-- and prepares a join for millions. Run with the daemon's rights, called by the view as its reader.
CREATE FUNCTION catalog_internal.trust_terms(
  OUT live_target interval, OUT snapshot_target interval, OUT incident boolean, OUT catalog_doubt text,
  OUT at_work boolean, OUT silent_until timestamptz
)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  s catalog_internal.sync;
  p catalog_internal.pace;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO s FROM catalog_internal.sync;
  SELECT * INTO p FROM catalog_internal.pace;
  live_target := make_interval(secs => g.live_interval);
  snapshot_target := make_interval(secs => CASE WHEN g.sweep_interval > 0 THEN least(g.sweep_interval, g.metadata_interval) ELSE g.metadata_interval END);
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  catalog_doubt := CASE catalog_internal.catalog_state(s)
    WHEN 'none' THEN 'no_baseline'
    WHEN 'stale' THEN 'catalog_stale'
    -- Half an hour is what the alert CatalogMirrorDeltaStalled allows.
    ELSE CASE WHEN coalesce(s.delta_checked_at, s.manifest_applied_at) < now() - make_interval(secs => greatest(1800, 3 * g.delta_interval))
      THEN 'delta_late' END
  END;
  -- With a daemon there, this task ends every minute.
  at_work := p.refusal IS NULL
    AND coalesce((SELECT finished_at > now() - interval '5 minutes' FROM catalog_internal.tasks WHERE task = 'maintenance'), false);
  silent_until := CASE WHEN p.silent_until > now() THEN p.silent_until END;
END
$$;
--> statement-breakpoint

-- Seconds of work at the present pace that stand before a look that is owed now: at places 1 to 6 by its lane, at 7 for one that
-- counts as live. As if all that is at least as urgent went first. Null where the backlog was not counted in the last five minutes.
CREATE FUNCTION catalog_internal.seconds_ahead() RETURNS float8[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  p catalog_internal.pace;
  backlog jsonb;
  cheap_per_second float8;
  live_per_second float8;
BEGIN
  SELECT figures -> 'due' INTO backlog FROM catalog_internal.catalog_figures WHERE counted_at > now() - interval '5 minutes';
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  cheap_per_second := g.bulk_max_skus * catalog_internal.present_ceiling(p) / 60;
  live_per_second := least((SELECT ceiling_per_minute FROM catalog_internal.live_plan),
    coalesce((SELECT live_budget FROM catalog_internal.sync), g.bulk_live_budget) * catalog_internal.present_ceiling(p)) / 60;
  RETURN (
    WITH owed AS MATERIALIZED (
      SELECT r ->> 'reason' AS reason, (r ->> 'count')::float8 AS skus FROM jsonb_array_elements(backlog) AS r
    )
    SELECT array_agg(coalesce(CASE
               WHEN lane <= 6 THEN (SELECT sum(skus) FROM owed WHERE reason NOT IN ('live', 'deferred') AND catalog_internal.lane_of(reason) <= lane)
               ELSE (SELECT sum(skus) FROM owed WHERE reason IN ('live', 'deferred'))
             END, 0) / nullif(CASE WHEN lane <= 6 THEN cheap_per_second ELSE live_per_second END, 0) ORDER BY lane)
    FROM generate_series(1, 7) AS lane WHERE backlog IS NOT NULL
  );
END
$$;
--> statement-breakpoint

-- How far each SKU's prices can be trusted. `stale` is what it was in current_prices (0009), which now reads it here; `fresh` is
-- what the metric fresh_skus counts; `doubt` goes on where these two know nothing: of the catalog as a whole, and of meaning.
CREATE VIEW catalog.sku_trust AS
SELECT s.sku, s.state, s.price_source, s.in_manifest, s.priced_at,
       CASE WHEN s.state = 'priced' THEN greatest(now() - s.priced_at, interval '0') END AS price_age,
       CASE WHEN s.state = 'priced' THEN k.target END AS target_age,
       b.past_target,
       k.owed,
       CASE WHEN k.owed THEN d.reason END AS owed_reason,
       CASE WHEN NOT k.owed THEN NULL
            WHEN d.deferrals > 0 THEN 'deferred'
            WHEN d.failures > 0 THEN 'error'
            ELSE (ARRAY['changed', 'live', 'new', 'error', 'metadata', 'sweep'])[d.lane]
       END AS owed_lane,
       CASE WHEN k.owed THEN d.due_at END AS owed_since,
       coalesce(d.deferrals, 0) AS deferrals,
       coalesce(d.failures, 0) AS failures,
       CASE WHEN NOT t.at_work OR d.due_at = 'infinity' THEN NULL
            WHEN NOT k.owed THEN greatest(d.due_at, d.held_until, t.silent_until)
            WHEN d.held_until > now() THEN greatest(CASE WHEN d.claim IS NULL THEN d.held_until ELSE now() END, t.silent_until)
            ELSE greatest(now(), t.silent_until)
                   + make_interval(secs => (SELECT catalog_internal.seconds_ahead())[CASE WHEN d.live THEN 7 ELSE d.lane END])
       END AS next_look_at,
       b.stale,
       s.state = 'priced' AND NOT b.stale AND NOT b.past_target AS fresh,
       c.doubt,
       c.doubt IS NULL AS actionable
FROM catalog.skus s
LEFT JOIN catalog_internal.due d ON d.sku = s.sku
CROSS JOIN catalog_internal.trust_terms() t
CROSS JOIN LATERAL (
  SELECT coalesce(d.due_at <= now(), false) AS owed,
         coalesce(d.due_at <= now() AND d.reason <> 'metadata', false) AS reprice_owed,
         s.price_source IS NOT DISTINCT FROM 'live' OR coalesce(d.live AND d.reason = 'live', false) AS looked_at_as_live,
         CASE WHEN s.price_source IS NOT DISTINCT FROM 'live' THEN t.live_target
              WHEN d.live AND d.reason = 'live' THEN least(t.live_target, t.snapshot_target)
              ELSE t.snapshot_target
         END AS target
) k
CROSS JOIN LATERAL (
  SELECT s.state = 'priced' AND coalesce(s.priced_at, '-infinity') < now() - k.target AS past_target,
         k.reprice_owed OR (k.looked_at_as_live AND coalesce(s.priced_at, '-infinity') < now() - t.live_target) AS stale
) b
CROSS JOIN LATERAL (
  SELECT CASE
           WHEN s.state <> 'priced' THEN s.state
           WHEN k.reprice_owed THEN 'owed'
           WHEN b.past_target OR b.stale THEN 'past_target'
           WHEN k.owed THEN 'size_type'
           WHEN t.incident AND s.priced_at < now() - t.live_target THEN 'incident'
           WHEN s.price_source IS DISTINCT FROM 'live' THEN t.catalog_doubt
         END AS doubt
) c;
--> statement-breakpoint

-- As before (0009), with the reading of trust from where it stands for all.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT t.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       t.price_source, t.priced_at, p.changed_at, t.stale,
       t.actionable AND p.price IS NOT NULL AS actionable
FROM catalog.sku_trust t
JOIN catalog.prices p ON p.sku = t.sku
LEFT JOIN catalog.products pr ON pr.sku = t.sku;
--> statement-breakpoint

-- The functions below are single statements without rights or settings of their own, so that the planner sees through them.
CREATE FUNCTION catalog.lowest_prices(
  of_size text, of_brand text DEFAULT NULL, of_model text DEFAULT NULL, of_size_type text DEFAULT NULL,
  most integer DEFAULT 100, only_actionable boolean DEFAULT true
) RETURNS TABLE (sku text, size text, price integer, size_type text, name text, brand text, model text, priced_at timestamptz, actionable boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100 AS $$
  SELECT p.sku, p.size, p.price, pr.size_map_size_type, pr.name, pr.brand, pr.model, t.priced_at, t.actionable
  FROM catalog.products pr
  JOIN catalog.prices p ON p.sku = pr.sku AND p.size = of_size AND p.price IS NOT NULL
  JOIN catalog.sku_trust t ON t.sku = pr.sku
  WHERE (of_brand IS NULL OR left(pr.brand, 200) = left(of_brand, 200) AND pr.brand = of_brand)
    AND (of_model IS NULL OR left(pr.model, 200) = left(of_model, 200) AND pr.model = of_model)
    AND (of_size_type IS NULL OR pr.size_map_size_type = of_size_type)
    AND (t.actionable OR NOT only_actionable)
  ORDER BY p.price, p.sku
  LIMIT most
$$;
--> statement-breakpoint

CREATE FUNCTION catalog.movers(within interval DEFAULT '1 hour', most integer DEFAULT 100)
RETURNS TABLE (sku text, size text, old_price integer, new_price integer, change integer, change_ratio double precision,
  moves bigint, last_moved_at timestamptz, name text, brand text, model text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100 AS $$
  SELECT m.sku, m.size, m.old_price, m.new_price, m.new_price - m.old_price,
         m.new_price::float8 / nullif(m.old_price, 0) - 1, m.moves, m.last_moved_at, pr.name, pr.brand, pr.model
  FROM (
    SELECT h.sku, h.size, count(*) AS moves, max(h.observed_at) AS last_moved_at,
           (array_agg(h.old_price ORDER BY h.id))[1] AS old_price, (array_agg(h.new_price ORDER BY h.id DESC))[1] AS new_price
    FROM catalog.price_history h
    WHERE h.observed_at > now() - within
      -- Up to a correction of what the sizes mean, the prices were of other sizes.
      AND NOT EXISTS (
        SELECT FROM catalog.product_history c
        WHERE c.sku = h.sku AND c.field = 'size_map_size_type' AND c.observed_at >= h.observed_at
      )
    GROUP BY h.sku, h.size
  ) m
  LEFT JOIN catalog.products pr ON pr.sku = m.sku
  WHERE m.old_price <> m.new_price
  ORDER BY abs(m.new_price::float8 / nullif(m.old_price, 0) - 1) DESC NULLS FIRST, m.sku, m.size
  LIMIT most
$$;
--> statement-breakpoint

CREATE FUNCTION catalog.skus_past_target(most integer DEFAULT 1000) RETURNS SETOF catalog.sku_trust
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000 AS $$
  SELECT t.* FROM catalog.sku_trust t WHERE t.past_target ORDER BY t.priced_at LIMIT most
$$;
--> statement-breakpoint

REVOKE ALL ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean), catalog.movers(interval, integer),
  catalog.skus_past_target(integer) FROM PUBLIC;
--> statement-breakpoint
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT SELECT ON catalog.sku_trust TO catalog_reader;
    GRANT EXECUTE ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean), catalog.movers(interval, integer),
      catalog.skus_past_target(integer) TO catalog_reader;
  END IF;
END
$$;
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.sku IS 'The partner''s SKU, spelled exactly as the partner spells it.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.prices.sku IS 'SKU in catalog.skus.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.sku IS 'SKU in catalog.skus.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.name IS 'product.name.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.model IS 'product.model.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.brand IS 'product.brand.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.gender_size IS 'product.gender_size.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.products.category IS 'product.category.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.price_history.sku IS 'SKU in catalog.skus.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.price_history.size IS 'Size key as the partner names it.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.price_history.old_price IS 'Whole baht before; null: the size appeared, or its entry carried no readable price.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.price_history.new_price IS 'Whole baht after; null: the size went (also with the whole SKU), or its entry carries no readable price.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.price_history.observed_at IS 'When the request was sent whose answer showed the move; for a removal, when the delta reported it.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.product_history.sku IS 'SKU in catalog.skus.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.product_history.field IS 'Column of catalog.products that changed; product: members of the product object that have no column.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.product_history.old_value IS 'Value before, as text.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.product_history.new_value IS 'Value after, as text.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.product_history.observed_at IS 'When the request was sent whose answer showed the change.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.watchlist.sku IS 'SKU to watch, spelled exactly as the partner spells it, 1 to 512 characters.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.sku IS 'SKU in catalog.skus. sku = any(...) finds many at once by their key.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.size IS 'Size key as the partner names it; size_type says what it means.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.price IS 'Whole baht (THB); null where the partner''s entry carries no readable price.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.name IS 'product.name.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.brand IS 'product.brand.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.model IS 'product.model.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.gender_size IS 'product.gender_size.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.category IS 'product.category.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.price_source IS 'snapshot: the delta reports its price moves; live: the mirror looks by itself; null: unknown.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.priced_at IS 'When the partner last answered for this SKU: the price was right then.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.changed_at IS 'When the mirror saw the price change (or the size appear).';
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.actionable IS 'True where the price may be acted on: there is one, and catalog.sku_trust has no doubt of its SKU.';
--> statement-breakpoint
COMMENT ON VIEW catalog.current_prices IS 'Prices with what they mean and how far to trust them. Prices to act on: WHERE actionable.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.snapshot_id IS 'Snapshot that the mirror follows: the delta is asked from there.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.snapshot_generated_at IS 'Build time of the newest snapshot that the manifest route told of.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.manifest_applied_at IS 'When a manifest was last applied (baseline).';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.delta_checked_at IS 'When the delta was last asked for and applied.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.skus IS 'SKUs in the mirror, in any state.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.live_skus IS 'SKUs of price_source live.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.pending_skus IS 'SKUs not priced yet.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.deferred_skus IS 'SKUs that the partner deferred, waiting or due again.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.oldest_due_at IS 'Since when the SKU owed for longest has been due; null: nothing is owed.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.backing_off_until IS 'Until when nobody sends after a refusal; null: no silence.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.delta_audit.since IS 'Since when is counted.';
--> statement-breakpoint
COMMENT ON VIEW catalog.sku_trust IS 'How far the prices of each SKU can be trusted, one row a SKU: WHERE actionable leaves those to act on; doubt says why not.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.sku IS 'SKU in catalog.skus.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.state IS 'pending, priced, not_found or removed, as in catalog.skus.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.price_source IS 'snapshot, live, or null while unknown, as in catalog.skus.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.in_manifest IS 'Listed by the newest manifest as corrected since. False: no delta reports its price moves, so judge by price_age.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.priced_at IS 'When the partner last answered for this SKU.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.price_age IS 'Age of its prices; null where it has none (state other than priced).';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.target_age IS 'Age that its prices are not to exceed: LIVE_INTERVAL for a live SKU, SWEEP_INTERVAL for any other (METADATA_INTERVAL where that is shorter, or sweeps are off); null where it has none.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.past_target IS 'True where price_age exceeds target_age.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.owed IS 'True while a look at the SKU is owed, also while it waits after being deferred or failing.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a look is owed: new, changed, live, sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command); null: none is owed.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the owed look is served: changed (urgent: also watched and refresh), live, new, deferred or error (waits, or has waited), metadata, sweep; null: none is owed.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the look is owed; null: none is owed.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, or its answer could not be read.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a look that is not owed yet (a spare place in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused, or nothing counted within five minutes.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a re-price is known to be owed, and where a live price is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced, not stale, and not past its target: what the metric fresh_skus counts.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: pending, not_found, removed (its state); owed (a re-price: see owed_reason); past_target (too old); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), catalog_stale (catalog_state of catalog.sync_status), delta_late (no delta for 30 minutes, or three times DELTA_INTERVAL where that is longer). Null: none.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where nothing speaks against acting on its prices: doubt is null. Implies fresh. A size without a readable price is no price all the same.';
--> statement-breakpoint
COMMENT ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) IS 'Who offers a size cheapest: SKUs with that size key by price, of one brand, model or size type where given (exact spelling), at most so many. Prices that are not actionable are left out unless only_actionable is false.';
--> statement-breakpoint
COMMENT ON FUNCTION catalog.movers(interval, integer) IS 'What moved within a time (one hour): sizes by the relative change from the price before it to the newest, largest first. Sizes that only appeared or went are not in it, nor moves up to a correction of size_type: sizes meant something else then.';
--> statement-breakpoint
COMMENT ON FUNCTION catalog.skus_past_target(integer) IS 'SKUs whose prices are older than their target, oldest first, at most so many: rows of catalog.sku_trust.';
