-- How far each SKU's prices can be trusted; all other readers use this. `stale` is what current_prices shows; `fresh`
-- is what the metric fresh_skus counts; `doubt` also covers what these two do not know: the catalog as a whole, and
-- what the sizes mean. Four relations, because each one counts towards what sellers may join (trust_now).
CREATE OR REPLACE VIEW catalog.sku_trust AS
SELECT s.sku, s.state, s.price_source, s.in_manifest, s.priced_at,
       CASE WHEN s.state = 'priced' THEN greatest(t.moment - s.priced_at, interval '0') END AS price_age,
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
            WHEN d.claim IS NOT NULL AND d.held_until > t.moment THEN greatest(t.moment, t.backoff_until)
            WHEN d.live AND (NOT k.owed OR d.held_until > t.moment) THEN (
              -- It keeps its place while it waits. One evaluation of what is ahead.
              SELECT CASE WHEN q.ahead IS NULL THEN NULL
                          WHEN NOT k.owed THEN greatest(least(d.due_at + q.ahead, CASE WHEN d.promised_at > t.moment THEN d.promised_at WHEN d.promised_at <= t.moment THEN t.moment END), d.held_until, t.backoff_until)
                          ELSE greatest(d.held_until, t.backoff_until, t.moment + q.ahead)
                     END
              FROM (SELECT (SELECT catalog_internal.live_ahead()) AS ahead OFFSET 0) q
            )
            WHEN NOT k.owed THEN greatest(least(d.due_at, CASE WHEN d.promised_at > t.moment THEN d.promised_at WHEN d.promised_at <= t.moment THEN t.moment END), d.held_until, t.backoff_until)
            WHEN d.held_until > t.moment THEN greatest(d.held_until, t.backoff_until)
            ELSE greatest(t.moment, t.backoff_until)
                   + make_interval(secs => (SELECT catalog_internal.seconds_ahead())[CASE WHEN d.live THEN cardinality(catalog_internal.lane_names()) + 1 ELSE d.lane END])
       END AS next_look_at,
       b.stale,
       s.state = 'priced' AND s.priced_at <= t.believable_until AND NOT b.stale AND NOT b.past_target AND d.outside_due_at IS NULL AS fresh,
       c.doubt,
       coalesce(c.doubt IS NULL AND r.p_right >= t.confidence, false) AS actionable,
       CASE WHEN h.has_age THEN r.p_right::real END AS p_right,
       CASE WHEN h.has_age THEN r.size_p_right::real END AS size_p_right,
       coalesce(c.doubt IS NULL AND r.size_p_right >= t.confidence, false) AS size_actionable
FROM catalog.skus s
LEFT JOIN catalog_internal.due d ON d.sku = s.sku
LEFT JOIN catalog_internal.live_rates l ON l.sku = s.sku
CROSS JOIN catalog_internal.trust_now((SELECT catalog_internal.moment())) t
CROSS JOIN LATERAL (
  SELECT coalesce(d.due_at <= t.moment, false) AS owed,
         -- What is out of scope is asked for no more, and its prices are no fresher for that.
         -- Nothing says that it has moved where it is asked for its metadata, or to see an answer again.
         coalesce(coalesce(d.outside_due_at, d.due_at) <= t.moment AND d.reason NOT IN ('metadata', 'again'), false) AS reprice_due,
         -- The plan has its turn come: nothing says that it has moved, and it was asked for (of this account) before.
         s.price_source IS NOT DISTINCT FROM 'live' AND d.reason IS NOT DISTINCT FROM 'live' AND s.asked_at IS NOT NULL AS in_turn,
         s.price_source IS NOT DISTINCT FROM 'live' OR coalesce(d.live AND d.reason = 'live', false)
           OR (s.state = 'priced' AND NOT s.in_manifest) AS refreshed_as_live,
         -- No delta reports the moves of a live SKU, nor those of one that no manifest lists.
         CASE WHEN s.price_source IS NOT DISTINCT FROM 'live' OR NOT s.in_manifest THEN t.live_target
              WHEN d.live AND d.reason = 'live' THEN least(t.live_target, t.snapshot_target)
              ELSE t.snapshot_target
         END AS target
) k
CROSS JOIN LATERAL (
  SELECT s.state = 'priced' AND coalesce(s.priced_at, '-infinity') < t.moment - k.target AS past_target,
         k.reprice_due OR (k.refreshed_as_live AND coalesce(s.priced_at, '-infinity') < t.moment - t.live_target) AS stale
) b
CROSS JOIN LATERAL (
  SELECT CASE
           WHEN d.outside_due_at IS NOT NULL THEN 'out_of_scope'
           WHEN s.state <> 'priced' THEN s.state
           WHEN s.priced_at > t.believable_until OR k.owed AND d.reason = 'clock' THEN 'clock'
           WHEN d.doubt IS NOT NULL THEN d.doubt
           -- What an incident has put into the turns of live SKUs may have been reported before, and asked for by nobody since.
           -- Where somebody has deleted its row of the ledger, nobody knows what had been reported.
           WHEN d.sku IS NULL OR CASE WHEN k.in_turn THEN date_trunc('milliseconds', s.reported_at) > s.asked_at ELSE k.reprice_due END THEN 'owed'
           -- Within the plan, a live price is judged by its probability, and not by its age.
           WHEN CASE WHEN k.in_turn THEN coalesce(s.priced_at, '-infinity') < t.moment - t.longest_wait
                     ELSE b.past_target OR b.stale
                END THEN 'past_target'
           WHEN k.owed AND d.reason = 'metadata' THEN 'size_type'
           WHEN t.incident AND s.priced_at < t.moment - t.live_target THEN 'incident'
           -- While nothing reports its moves, it is as good as a live one: by age.
           WHEN s.price_source IS DISTINCT FROM 'live'
                AND (t.catalog_doubt = 'no_baseline' OR s.priced_at < t.moment - t.live_target) THEN t.catalog_doubt
         END AS doubt
) c
CROSS JOIN LATERAL (
  SELECT s.state = 'priced' AND s.priced_at <= t.believable_until AS has_age,
         greatest(0, date_part('epoch', t.moment - s.priced_at) / 60) AS minutes,
         s.price_source IS NOT DISTINCT FROM 'live' OR NOT s.in_manifest OR coalesce(d.live OR d.missed_moves > 0, false) AS by_rate,
         -- Null while its answer to a report, which had nothing new, is to be seen again (p_right).
         CASE WHEN coalesce(d.outside_due_at, d.due_at) <= t.moment AND d.reason = 'changed' THEN true WHEN d.again_at IS NULL THEN false END AS reported
) h
-- A row of columns, through which the planner sees, and no value that a scan would take apart for each price.
CROSS JOIN LATERAL (
  SELECT ROW(t.live_moved_part, t.snapshot_moved_part, t.reported_moves, t.waiting_moves, t.missed_rate, t.move_rate,
             t.live_prior_minutes, t.silent_minutes, t.confidence, t.longest_wait, t.late_moves)::catalog_internal.held_beliefs AS held
) e
CROSS JOIN LATERAL (
  SELECT catalog_internal.p_right(h.by_rate, h.reported, false, h.minutes, l, e.held) AS p_right,
         catalog_internal.p_right(h.by_rate, h.reported, true, h.minutes, l, e.held) AS size_p_right
) r;

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
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a refresh is due: new, changed, live, unlisted (not in_manifest), missed (its turn had come: the delta has left out a change of it), sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command), doubted (to be answered a second time), again (to see whether an answer without the reported change was a cache''s), clock (asked while the clock of Postgres was ahead), scope (a rule of catalog.scope needs its metadata); null: none is due, as of all that is out of scope.';
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the due refresh is served: changed (urgent: also watched, refresh and doubted), live (also unlisted and missed), new (also clock), deferred or error (waits, or has waited), metadata, sweep; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the refresh is due; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, its answer could not be read, or a call with this SKU alone failed.';
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, for a live one, where the partner computes only so many, and the turn after that, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused or paused without an end, nothing counted within five minutes, or, for a live one, no live price computed for half an hour.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced and in scope, at a time that can be believed, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: out_of_scope (catalog.scope says that it is not priced, so its prices only get older); pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); implausible (the partner says it, but it is hardly a price: catalog.explain says why), mass-move (prices of many SKUs have moved implausibly), both until a second answer, five minutes later or more, says the same; owed (a re-price: see owed_reason; the next turn of a live SKU is none, unless it was reported since it was asked; nor is anything known to be due of a SKU whose row of the ledger somebody has deleted, until it is made anew); past_target (too old: beyond target_age, and for a live SKU in its turns beyond LIVE_INTERVAL and the longest wait that is planned); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where its prices may be acted on: doubt is null, and p_right is ACTIONABLE_CONFIDENCE at least. A size without a readable price is no price all the same.';
COMMENT ON COLUMN catalog.sku_trust.p_right IS 'Probability that the partner, asked now, would answer every price of this SKU as it is here; null where it has none, or nobody knows when it was answered (doubt is clock). catalog.calibration says how well that has held.';
COMMENT ON COLUMN catalog.sku_trust.size_p_right IS 'The same for one of its sizes: when a SKU moves, not all of its sizes do.';
COMMENT ON COLUMN catalog.sku_trust.size_actionable IS 'The same as actionable for one of its sizes: doubt is null, and size_p_right is ACTIONABLE_CONFIDENCE at least.';
