-- The lane that a reason is served in; the planner (src/sync/reprice/plan.ts) serves lower numbers first.
CREATE OR REPLACE FUNCTION catalog_internal.lane_of(reason text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE reason
    WHEN 'changed' THEN 1 WHEN 'watched' THEN 1 WHEN 'refresh' THEN 1
    WHEN 'live' THEN 2 WHEN 'unlisted' THEN 2
    WHEN 'new' THEN 3 WHEN 'absent' THEN 3 WHEN 'removed' THEN 3
    WHEN 'error' THEN 4
    WHEN 'metadata' THEN 5
    ELSE 6
  END::smallint
$$;

REVOKE ALL ON FUNCTION catalog_internal.lane_of(text) FROM PUBLIC;
--> statement-breakpoint
-- SKUs that no manifest lists had the target of snapshot-priced ones. Their rows only; one that is due for another reason gets its
-- place with its next answer. Locks in everyone's order, SKUs before the ledger; and before the view, whose readers wait for the end of
-- this transaction.
WITH unlisted AS MATERIALIZED (
  SELECT s.sku, s.priced_at FROM catalog.skus s JOIN catalog_internal.due d USING (sku)
  WHERE NOT s.in_manifest AND s.state = 'priced' AND s.price_source IS DISTINCT FROM 'live'
    AND (d.reason = 'sweep' OR d.reason = 'metadata' AND d.due_at > now())
  ORDER BY s.sku FOR UPDATE OF s, d
)
UPDATE catalog_internal.due d SET reason = 'unlisted',
  lane = CASE WHEN d.lane = catalog_internal.lane_of('error') THEN d.lane ELSE catalog_internal.lane_of('unlisted') END,
  due_at = least(d.due_at, u.priced_at + make_interval(secs => g.live_interval))
FROM unlisted u CROSS JOIN catalog_internal.settings g
WHERE d.sku = u.sku;
--> statement-breakpoint
-- How far each SKU's prices can be trusted, for every other reader of it. `stale` is what current_prices shows;
-- `fresh` is what the metric fresh_skus counts; `doubt` also covers what these two know nothing of: the catalog as a
-- whole, and what the sizes mean.
CREATE OR REPLACE VIEW catalog.sku_trust AS
SELECT s.sku, s.state, s.price_source, s.in_manifest, s.priced_at,
       CASE WHEN s.state = 'priced' THEN greatest(now() - s.priced_at, interval '0') END AS price_age,
       CASE WHEN s.state = 'priced' THEN k.target END AS target_age,
       b.past_target,
       k.owed,
       CASE WHEN k.owed THEN d.reason END AS owed_reason,
       CASE WHEN NOT k.owed THEN NULL
            WHEN d.deferrals > 0 THEN 'deferred'
            WHEN d.failures > 0 THEN 'error'
            ELSE (catalog_internal.lane_names())[d.lane]
       END AS owed_lane,
       CASE WHEN k.owed THEN d.due_at END AS owed_since,
       coalesce(d.deferrals, 0) AS deferrals,
       coalesce(d.failures, 0) AS failures,
       CASE WHEN NOT t.at_work OR d.due_at = 'infinity' THEN NULL
            WHEN NOT k.owed THEN greatest(d.due_at, d.held_until, t.backoff_until)
            WHEN d.held_until > now() THEN greatest(CASE WHEN d.claim IS NULL THEN d.held_until ELSE now() END, t.backoff_until)
            ELSE greatest(now(), t.backoff_until)
                   + make_interval(secs => (SELECT catalog_internal.seconds_ahead())[CASE WHEN d.live THEN cardinality(catalog_internal.lane_names()) + 1 ELSE d.lane END])
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
         coalesce(d.due_at <= now() AND d.reason <> 'metadata', false) AS reprice_due,
         s.price_source IS NOT DISTINCT FROM 'live' OR coalesce(d.live AND d.reason = 'live', false)
           OR (s.state = 'priced' AND NOT s.in_manifest) AS refreshed_as_live,
         -- No delta reports the moves of a live SKU, nor those of one that no manifest lists.
         CASE WHEN s.price_source IS NOT DISTINCT FROM 'live' OR NOT s.in_manifest THEN t.live_target
              WHEN d.live AND d.reason = 'live' THEN least(t.live_target, t.snapshot_target)
              ELSE t.snapshot_target
         END AS target
) k
CROSS JOIN LATERAL (
  SELECT s.state = 'priced' AND coalesce(s.priced_at, '-infinity') < now() - k.target AS past_target,
         k.reprice_due OR (k.refreshed_as_live AND coalesce(s.priced_at, '-infinity') < now() - t.live_target) AS stale
) b
CROSS JOIN LATERAL (
  SELECT CASE
           WHEN s.state <> 'priced' THEN s.state
           WHEN k.reprice_due THEN 'owed'
           WHEN b.past_target OR b.stale THEN 'past_target'
           WHEN k.owed THEN 'size_type'
           WHEN t.incident AND s.priced_at < now() - t.live_target THEN 'incident'
           -- While nothing reports its moves, it is as good as a live one: by age.
           WHEN s.price_source IS DISTINCT FROM 'live'
                AND (t.catalog_doubt = 'no_baseline' OR s.priced_at < now() - t.live_target) THEN t.catalog_doubt
         END AS doubt
) c;

COMMENT ON VIEW catalog.sku_trust IS 'How far the prices of each SKU can be trusted, one row a SKU: WHERE actionable leaves those to act on; doubt says why not.';
COMMENT ON COLUMN catalog.sku_trust.sku IS 'SKU in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.state IS 'pending, priced, not_found or removed, as in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.price_source IS 'snapshot, live, or null while unknown, as in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.in_manifest IS 'Listed by the newest manifest as corrected since. False: no delta reports its price moves, so it is refreshed and judged by age, as a live SKU is.';
COMMENT ON COLUMN catalog.sku_trust.priced_at IS 'When the partner last answered for this SKU.';
COMMENT ON COLUMN catalog.sku_trust.price_age IS 'Age of its prices; null where it has none (state other than priced).';
COMMENT ON COLUMN catalog.sku_trust.target_age IS 'Age that its prices are not to exceed: LIVE_INTERVAL for a live SKU and for one that is not in_manifest, SWEEP_INTERVAL for any other (METADATA_INTERVAL where that is shorter, or sweeps are off); null where it has none.';
COMMENT ON COLUMN catalog.sku_trust.past_target IS 'True where price_age exceeds target_age.';
COMMENT ON COLUMN catalog.sku_trust.owed IS 'True while a refresh of the SKU is due, also while it waits after being deferred or failing.';
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a refresh is due: new, changed, live, unlisted (not in_manifest), sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command); null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the due refresh is served: changed (urgent: also watched and refresh), live (also unlisted), new, deferred or error (waits, or has waited), metadata, sweep; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the refresh is due; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, its answer could not be read, or a call with this SKU alone failed.';
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused, or nothing counted within five minutes.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: pending, not_found, removed (its state); owed (a re-price: see owed_reason); past_target (too old); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where nothing speaks against acting on its prices: doubt is null. Implies fresh. A size without a readable price is no price all the same.';
--> statement-breakpoint
-- `sku` is that of the SKU's row (through sku_trust), not of the prices: where many are named, `sku = any(…)` finds
-- these rows first, by their key, and then the rest; a condition on the SKU of the prices would reach none of the
-- other tables, which would be read from end to end.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT t.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       t.price_source, t.priced_at, p.changed_at, t.stale,
       t.actionable AND p.price IS NOT NULL AS actionable
FROM catalog.sku_trust t
JOIN catalog.prices p ON p.sku = t.sku
LEFT JOIN catalog.products pr ON pr.sku = t.sku;

COMMENT ON VIEW catalog.current_prices IS 'Prices with what they mean and how far to trust them. Prices to act on: WHERE actionable.';
COMMENT ON COLUMN catalog.current_prices.sku IS 'SKU in catalog.skus. sku = any(...) finds many at once by their key.';
COMMENT ON COLUMN catalog.current_prices.size IS 'Size key as the partner names it; size_type says what it means.';
COMMENT ON COLUMN catalog.current_prices.price IS 'Whole baht (THB); null where the partner''s entry carries no readable price.';
COMMENT ON COLUMN catalog.current_prices.size_type IS 'What the size means (size_map.size_type).';
COMMENT ON COLUMN catalog.current_prices.name IS 'product.name.';
COMMENT ON COLUMN catalog.current_prices.brand IS 'product.brand.';
COMMENT ON COLUMN catalog.current_prices.model IS 'product.model.';
COMMENT ON COLUMN catalog.current_prices.gender_size IS 'product.gender_size.';
COMMENT ON COLUMN catalog.current_prices.category IS 'product.category.';
COMMENT ON COLUMN catalog.current_prices.price_source IS 'snapshot: the delta reports its price moves while a manifest lists it; live: the mirror refreshes by itself; null: unknown.';
COMMENT ON COLUMN catalog.current_prices.priced_at IS 'When the partner last answered for this SKU: the price was right then.';
COMMENT ON COLUMN catalog.current_prices.changed_at IS 'When the mirror saw the price change (or the size appear).';
COMMENT ON COLUMN catalog.current_prices.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that no manifest lists, is older than LIVE_INTERVAL.';
COMMENT ON COLUMN catalog.current_prices.actionable IS 'True where the price may be acted on: there is one, and catalog.sku_trust has no doubt of its SKU.';
