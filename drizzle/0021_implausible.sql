-- Prices that are hardly prices are not acted on before a second answer; p_right is computed with less work.
CREATE TABLE "catalog_internal"."mass_move" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"since" timestamp with time zone,
	"kind" text,
	"answers" integer,
	"implausible" integer,
	"move" real,
	"usual" real,
	CONSTRAINT "mass_move_one_row" CHECK ("catalog_internal"."mass_move"."id")
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "doubt" text;--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "oddity" text;--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "doubted_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "believed" jsonb;--> statement-breakpoint
CREATE INDEX "due_doubted" ON "catalog_internal"."due" USING btree ("doubted_at") WHERE doubt is not null;
--> statement-breakpoint
INSERT INTO "catalog_internal"."mass_move" DEFAULT VALUES;
--> statement-breakpoint
-- The probability that the partner, asked now, would answer what it answered `minutes` ago: for a SKU as a whole, or for one of
-- its sizes, of which only a part moves when the SKU does. `minutes` is not null, `rate`, what its own refreshes have taught, is where
-- none has. The cohorts live and unlisted go by_rate; `reported` is one of the others (cohort_of).
--
-- By a rate of its own: moves come by chance at a rate of which a gamma distribution is believed (alpha, beta in minutes), so that
-- none comes in t minutes with (1 + t / beta) ^ -alpha. Rates are learned from one move in 120 minutes on, whatever the market
-- (src/sync/live/policy.ts); here that part of beta counts as what all refreshes have taught of such SKUs (src/store/rate-prior.ts).
-- Snapshot-priced: the product of three: no move that waits to be reported, or of which a report is there; none that is never
-- reported; and none since reports fell silent, by the rate of all, which differs between SKUs as a gamma distribution of shape 1/2.
--
-- A single expression, so that the planner sees through it, and with as few operations as it takes: a scan computes it for each price. Bounded below by exp(-60), as a real is no number beyond exp(-87).
CREATE OR REPLACE FUNCTION catalog_internal.p_right(
  by_rate boolean, reported boolean, of_size boolean, minutes float8, rate catalog_internal.live_rates, held catalog_internal.held_beliefs
) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN by_rate
    THEN exp(-least(60, coalesce(rate.alpha, 1) * ln(
      1 + minutes / (coalesce(rate.beta, 120) + least(120, coalesce(rate.beta, 120)) * (held.live_prior_minutes / 120 - 1))
        * CASE WHEN of_size THEN (coalesce(rate.sizes_moved, 0) + 20 * held.live_moved_part) / (coalesce(rate.sizes_seen, 0) + 20) ELSE 1 END
    )))
    ELSE (1 - CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END * CASE WHEN reported THEN held.reported_moves ELSE held.waiting_moves END)
      * exp(-least(60, held.missed_rate * minutes * CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END))
      / CASE WHEN held.silent_minutes = 0 THEN 1
             ELSE sqrt(1 + 2 * held.move_rate * least(minutes, held.silent_minutes) * CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END)
        END
  END;
END;
--> statement-breakpoint
-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.p_right(boolean, boolean, boolean, float8, catalog_internal.live_rates, catalog_internal.held_beliefs) TO PUBLIC;
--> statement-breakpoint
-- The lane that a reason is served in; the planner (src/sync/reprice/plan.ts) serves lower numbers first.
CREATE OR REPLACE FUNCTION catalog_internal.lane_of(reason text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE reason
    WHEN 'changed' THEN 1 WHEN 'watched' THEN 1 WHEN 'refresh' THEN 1 WHEN 'doubted' THEN 1
    WHEN 'live' THEN 2 WHEN 'unlisted' THEN 2
    WHEN 'new' THEN 3 WHEN 'absent' THEN 3 WHEN 'removed' THEN 3 WHEN 'clock' THEN 3
    WHEN 'error' THEN 4
    WHEN 'metadata' THEN 5
    ELSE 6
  END::smallint;
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.lane_of(text) FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error, or for a second answer, is asked again at once. counts_as_live null leaves the live
-- flag as it is.
-- The rank is the weight as it stands once the rows are locked, because locking them may have waited for whoever tells
-- the ledger of another weight (watched_to_ledger). Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  marked bigint;
  ranked text[];
BEGIN
  WITH written AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(mark_due.skus) AS s
    ORDER BY s COLLATE "C"
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE WHEN d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason ELSE excluded.reason END,
      live = coalesce(counts_as_live, d.live),
      due_at = least(d.due_at, excluded.due_at),
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL) AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1) FROM written INTO marked, ranked;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM (
    SELECT unnest(ranked) AS sku UNION SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus)
  ) named LEFT JOIN catalog_internal.watched w USING (sku)
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1);
  RETURN marked;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
--> statement-breakpoint
-- Puts right what a clock that was ahead has written everywhere but by SKU and in the histories (redate_skus, redate_history), once it has been set back. Returns by how many
-- seconds it was, 0: it was not. That is at most by so much too little as the high-water mark was old.
CREATE OR REPLACE FUNCTION catalog_internal.set_back_clock() RETURNS float8
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz;
  shift interval;
BEGIN
  PERFORM FROM catalog_internal.clock FOR UPDATE;
  LOCK TABLE catalog_internal.lock_pace IN EXCLUSIVE MODE;
  moment := clock_timestamp();
  shift := catalog_internal.clock_high_water() - moment;
  IF shift < interval '2 seconds' THEN
    RETURN 0;
  END IF;
  UPDATE catalog_internal.clock SET high_water = moment, steady_since = moment,
    set_back_seconds = coalesce(set_back_seconds, 0) + extract(epoch FROM shift);
  UPDATE catalog_internal.pace_sends SET sent_at = catalog_internal.happened(sent_at, moment, shift) WHERE sent_at > moment;
  PERFORM catalog_internal.recount_others(moment, shift);
  UPDATE catalog_internal.pace SET raised_at = catalog_internal.happened(raised_at, moment, shift),
    half_open_sent_at = catalog_internal.happened(half_open_sent_at, moment, shift),
    refused_since = catalog_internal.happened(refused_since, moment, shift),
    refused_at = catalog_internal.happened(refused_at, moment, shift),
    backoff_until = catalog_internal.awaited(backoff_until, moment, shift);
  UPDATE catalog_internal.tasks SET next_at = catalog_internal.awaited(next_at, moment, shift),
    started_at = catalog_internal.happened(started_at, moment, shift),
    finished_at = catalog_internal.happened(finished_at, moment, shift),
    succeeded_at = catalog_internal.happened(succeeded_at, moment, shift),
    -- A run that lives renews its lease.
    running_until = CASE WHEN running_until > moment THEN least(running_until, moment + interval '20 seconds') END;
  UPDATE catalog_internal.sync SET manifest_applied_at = catalog_internal.happened(manifest_applied_at, moment, shift),
    delta_checked_at = catalog_internal.happened(delta_checked_at, moment, shift),
    snapshot_moved_at = catalog_internal.happened(snapshot_moved_at, moment, shift),
    catalog_checked_at = catalog_internal.happened(catalog_checked_at, moment, shift),
    chain_broken_at = catalog_internal.happened(chain_broken_at, moment, shift),
    token_at = catalog_internal.happened(token_at, moment, shift),
    built_after = catalog_internal.happened(built_after, moment, shift);
  UPDATE catalog_internal.live_plan SET solved_at = catalog_internal.happened(solved_at, moment, shift),
    incident_since = catalog_internal.happened(incident_since, moment, shift),
    incident_tried_at = catalog_internal.happened(incident_tried_at, moment, shift);
  UPDATE catalog_internal.live_ceiling SET since = catalog_internal.happened(since, moment, shift),
    blocked_at = catalog_internal.happened(blocked_at, moment, shift),
    failed_at = catalog_internal.happened(failed_at, moment, shift),
    cycle_from = catalog_internal.happened(cycle_from, moment, shift),
    credit_from = catalog_internal.happened(credit_from, moment, shift);
  UPDATE catalog_internal.live_calls SET called_at = catalog_internal.happened(called_at, moment, shift) WHERE called_at > moment;
  UPDATE catalog_internal.unreported_moves SET seen_at = catalog_internal.happened(seen_at, moment, shift),
    reported_at = catalog_internal.happened(reported_at, moment, shift)
  WHERE seen_at > moment OR reported_at > moment;
  UPDATE catalog_internal.mass_move SET since = catalog_internal.happened(since, moment, shift) WHERE since > moment;
  UPDATE catalog_internal.delta_audit SET since = catalog_internal.happened(since, moment, shift);
  UPDATE catalog_internal.quarantine SET seen_at = catalog_internal.happened(seen_at, moment, shift) WHERE seen_at > moment;
  -- Tests of prices whose age that clock told, and draws that it has dated.
  DELETE FROM catalog_internal.calibration_hours WHERE hour > moment;
  DELETE FROM catalog_internal.random_looks WHERE look_at > moment;
  -- The next reader of the status counts anew.
  DELETE FROM catalog_internal.catalog_counts WHERE counted_at > moment;
  RETURN extract(epoch FROM shift);
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.set_back_clock() FROM PUBLIC;
--> statement-breakpoint
-- Puts right what a clock that was ahead has written of SKUs, of at most so many after the SKU named, and marks them due: nobody knows
-- how long ago they were asked about. Returns the last of them, null: there are no more.
CREATE OR REPLACE FUNCTION catalog_internal.redate_skus(shift interval, after text, most integer) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
  ahead text[];
  asked text[];
BEGIN
  SELECT array_agg(sku ORDER BY sku) INTO ahead FROM (
    SELECT sku FROM catalog.skus
    -- Prices of those asked again since the clock is right may have changed before.
    WHERE sku > after AND (
      greatest(first_seen_at, first_priced_at, priced_at, reported_at, removed_at) > moment OR asked_at > moment - interval '10 minutes'
    )
    ORDER BY sku LIMIT most FOR UPDATE
  ) a;
  IF ahead IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT array_agg(s.sku) INTO asked FROM unnest(ahead) AS f(sku) JOIN catalog.skus s USING (sku)
  WHERE s.asked_at > moment AND s.state <> 'removed';
  UPDATE catalog.skus s SET first_seen_at = catalog_internal.happened(first_seen_at, moment, shift),
    first_priced_at = catalog_internal.happened(first_priced_at, moment, shift),
    priced_at = catalog_internal.happened(priced_at, moment, shift),
    asked_at = catalog_internal.happened(asked_at, moment, shift),
    reported_at = catalog_internal.happened(reported_at, moment, shift),
    removed_at = catalog_internal.happened(removed_at, moment, shift)
  FROM unnest(ahead) AS f(sku)
  WHERE s.sku = f.sku AND greatest(first_seen_at, first_priced_at, priced_at, asked_at, reported_at, removed_at) > moment;
  UPDATE catalog.prices p SET changed_at = catalog_internal.happened(changed_at, moment, shift)
  FROM unnest(ahead) AS f(sku) WHERE p.sku = f.sku AND p.changed_at > moment;
  UPDATE catalog.products p SET changed_at = catalog_internal.happened(changed_at, moment, shift),
    refreshed_at = catalog_internal.happened(refreshed_at, moment, shift)
  FROM unnest(ahead) AS f(sku) WHERE p.sku = f.sku AND greatest(p.changed_at, p.refreshed_at) > moment;
  UPDATE catalog_internal.due d SET doubted_at = catalog_internal.happened(doubted_at, moment, shift)
  FROM unnest(ahead) AS f(sku) WHERE d.sku = f.sku AND d.doubted_at > moment;
  IF asked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(asked, 'clock');
  END IF;
  RETURN ahead[cardinality(ahead)];
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.redate_skus(interval, text, integer) FROM PUBLIC;
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
       s.state = 'priced' AND s.priced_at <= u.believable_until AND NOT b.stale AND NOT b.past_target AS fresh,
       c.doubt,
       coalesce(c.doubt IS NULL AND r.p_right >= e.confidence, false) AS actionable,
       CASE WHEN h.has_age THEN r.p_right::real END AS p_right,
       CASE WHEN h.has_age THEN r.size_p_right::real END AS size_p_right,
       coalesce(c.doubt IS NULL AND r.size_p_right >= e.confidence, false) AS size_actionable
FROM catalog.skus s
LEFT JOIN catalog_internal.due d ON d.sku = s.sku
LEFT JOIN catalog_internal.live_rates l ON l.sku = s.sku
CROSS JOIN catalog_internal.trust_terms() t
CROSS JOIN catalog_internal.price_beliefs() e
CROSS JOIN catalog_internal.believable_until() AS u(believable_until)
CROSS JOIN LATERAL (
  SELECT coalesce(d.due_at <= now(), false) AS owed,
         coalesce(d.due_at <= now() AND d.reason <> 'metadata', false) AS reprice_due,
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
  SELECT s.state = 'priced' AND coalesce(s.priced_at, '-infinity') < now() - k.target AS past_target,
         k.reprice_due OR (k.refreshed_as_live AND coalesce(s.priced_at, '-infinity') < now() - t.live_target) AS stale
) b
CROSS JOIN LATERAL (
  SELECT CASE
           WHEN s.state <> 'priced' THEN s.state
           WHEN s.priced_at > u.believable_until OR k.owed AND d.reason = 'clock' THEN 'clock'
           WHEN d.doubt IS NOT NULL THEN d.doubt
           WHEN k.reprice_due AND NOT k.in_turn THEN 'owed'
           -- Within the plan, a live price is judged by its probability, and not by its age.
           WHEN CASE WHEN k.in_turn THEN coalesce(s.priced_at, '-infinity') < now() - e.longest_wait
                     ELSE b.past_target OR b.stale
                END THEN 'past_target'
           WHEN k.owed AND d.reason = 'metadata' THEN 'size_type'
           WHEN t.incident AND s.priced_at < now() - t.live_target THEN 'incident'
           -- While nothing reports its moves, it is as good as a live one: by age.
           WHEN s.price_source IS DISTINCT FROM 'live'
                AND (t.catalog_doubt = 'no_baseline' OR s.priced_at < now() - t.live_target) THEN t.catalog_doubt
         END AS doubt
) c
CROSS JOIN LATERAL (
  SELECT s.state = 'priced' AND s.priced_at <= u.believable_until AS has_age,
         greatest(0, date_part('epoch', now() - s.priced_at) / 60) AS minutes,
         s.price_source IS NOT DISTINCT FROM 'live' OR NOT s.in_manifest OR coalesce(d.live, false) AS by_rate,
         coalesce(d.due_at <= now() AND d.reason = 'changed', false) AS reported
) h
CROSS JOIN LATERAL (
  SELECT catalog_internal.p_right(h.by_rate, h.reported, false, h.minutes, l, e) AS p_right,
         catalog_internal.p_right(h.by_rate, h.reported, true, h.minutes, l, e) AS size_p_right
) r;
--> statement-breakpoint
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
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a refresh is due: new, changed, live, unlisted (not in_manifest), sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command), doubted (to be answered a second time), clock (asked while the clock of Postgres was ahead); null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the due refresh is served: changed (urgent: also watched, refresh and doubted), live (also unlisted), new (also clock), deferred or error (waits, or has waited), metadata, sweep; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the refresh is due; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, its answer could not be read, or a call with this SKU alone failed.';
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused, or nothing counted within five minutes.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced, at a time that can be believed, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); implausible (the partner says it, but it is hardly a price: catalog.explain says why), mass-move (prices of many SKUs have moved implausibly), both until a second answer, five minutes later or more, says the same; owed (a re-price: see owed_reason; the next turn of a live SKU is none); past_target (too old: beyond target_age, and for a live SKU in its turns beyond LIVE_INTERVAL and the longest wait that is planned); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where its prices may be acted on: doubt is null, and p_right is ACTIONABLE_CONFIDENCE at least. A size without a readable price is no price all the same.';
COMMENT ON COLUMN catalog.sku_trust.p_right IS 'Probability that the partner, asked now, would answer every price of this SKU as it is here; null where it has none, or nobody knows when it was answered (doubt is clock). catalog.calibration says how well that has held.';
COMMENT ON COLUMN catalog.sku_trust.size_p_right IS 'The same for one of its sizes: when a SKU moves, not all of its sizes do.';
COMMENT ON COLUMN catalog.sku_trust.size_actionable IS 'The same as actionable for one of its sizes: doubt is null, and size_p_right is ACTIONABLE_CONFIDENCE at least.';
--> statement-breakpoint
-- One row. The pacer makes its own row when it first starts, hence the LEFT JOIN.
CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus, k.pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p) AS requests_per_minute,
       CASE WHEN p.backoff_until > now() THEN p.backoff_until END AS backing_off_until,
       catalog_internal.catalog_state(s) AS catalog_state,
       l.incident_since,
       p.refusal, p.refused_since, coalesce(p.episodes, 0) AS refusals
FROM catalog_internal.sync s
CROSS JOIN catalog_internal.live_plan l
LEFT JOIN catalog_internal.pace p ON true
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= now() AND (deferrals = 0 AND (doubt IS NULL OR failures > 0) OR held_until IS NULL OR claim IS NOT NULL OR held_until <= now())) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= now()) AS oldest_due_at
  FROM catalog_internal.due
) d;
--> statement-breakpoint
COMMENT ON VIEW catalog.sync_status IS 'How the mirror stands, one row.';
COMMENT ON COLUMN catalog.sync_status.snapshot_id IS 'Snapshot that the mirror follows: the delta is asked from there.';
COMMENT ON COLUMN catalog.sync_status.snapshot_generated_at IS 'Build time of the newest snapshot that the manifest route told of.';
COMMENT ON COLUMN catalog.sync_status.manifest_applied_at IS 'When a manifest was last applied (baseline).';
COMMENT ON COLUMN catalog.sync_status.delta_checked_at IS 'When the delta was last asked for and applied.';
COMMENT ON COLUMN catalog.sync_status.skus IS 'SKUs in the mirror, in any state.';
COMMENT ON COLUMN catalog.sync_status.live_skus IS 'SKUs of price_source live.';
COMMENT ON COLUMN catalog.sync_status.pending_skus IS 'SKUs not priced yet.';
COMMENT ON COLUMN catalog.sync_status.due_skus IS 'SKUs due now; one that was deferred, or waits for a second answer, counts once its wait is over.';
COMMENT ON COLUMN catalog.sync_status.deferred_skus IS 'SKUs that the partner deferred, waiting or due again.';
COMMENT ON COLUMN catalog.sync_status.oldest_due_at IS 'Since when the SKU that has been due for longest is due; null: nothing is due.';
COMMENT ON COLUMN catalog.sync_status.requests_per_minute IS 'Requests a minute that the pacer allows the mirror at present.';
COMMENT ON COLUMN catalog.sync_status.backing_off_until IS 'Until when nobody sends after a refusal; null: no back-off.';
COMMENT ON COLUMN catalog.sync_status.catalog_state IS 'ok; stale: the catalog routes cannot be trusted to report changes, SKUs are re-priced by age; none: no baseline yet.';
COMMENT ON COLUMN catalog.sync_status.incident_since IS 'Since when the whole catalog is taken for live-priced: prices age, and are refreshed by worth with all there is; null: no incident.';
COMMENT ON COLUMN catalog.sync_status.refusal IS 'How the partner refused the last request: throttled-or-forbidden (403), unauthorised (401), authorizer-fault (the authorizer''s 500), account-not-configured; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refused_since IS 'When the first of the present refusals came; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refusals IS 'Refusals in a row, with nothing let through in between.';
--> statement-breakpoint
DROP FUNCTION catalog_internal.p_right(text, boolean, float8, catalog_internal.live_rates, catalog_internal.held_beliefs);
--> statement-breakpoint
-- Everything that is known of one SKU and decides what its prices are worth, for whoever doubts one of them. Null: it is not known.
-- With the owner's rights, as most of it is nobody's to read as a whole.
CREATE OR REPLACE FUNCTION catalog.explain(of_sku text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'sku', s.sku,
    'at', now(),
    'state', s.state,
    'price_source', s.price_source,
    'in_manifest', s.in_manifest,
    'product', (
      SELECT jsonb_build_object('name', pr.name, 'brand', pr.brand, 'model', pr.model, 'size_type', pr.size_map_size_type, 'refreshed_at', pr.refreshed_at)
      FROM catalog.products pr WHERE pr.sku = s.sku
    ),
    'answer', jsonb_build_object(
      'asked_at', s.asked_at, 'because', d.asked_because, 'priced_at', s.priced_at, 'first_priced_at', s.first_priced_at,
      'age_seconds', extract(epoch FROM t.price_age)::float8
    ),
    'report', jsonb_build_object(
      'reported_at', s.reported_at, 'removed_at', s.removed_at, 'asked_since', s.reported_at IS NOT NULL AND coalesce(s.asked_at >= s.reported_at, false)
    ),
    'trust', jsonb_build_object(
      'p_right', t.p_right, 'size_p_right', t.size_p_right, 'confidence', e.confidence, 'actionable', t.actionable, 'doubt', t.doubt,
      'doubted', CASE WHEN d.doubt IS NOT NULL THEN jsonb_build_object('oddity', d.oddity, 'since', d.doubted_at, 'before', d.believed) END,
      'stale', t.stale, 'past_target', t.past_target, 'target_seconds', extract(epoch FROM t.target_age)::float8
    ),
    'belief', jsonb_build_object(
      'cohort', c.cohort,
      'minutes_between_changes', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.beta, 120) + least(120, coalesce(l.beta, 120)) * (e.live_prior_minutes / 120 - 1)) / coalesce(l.alpha, 1) END,
      'own_rate', l.sku IS NOT NULL,
      'sizes_that_move', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.sizes_moved, 0) + 20 * e.live_moved_part) / (coalesce(l.sizes_seen, 0) + 20) ELSE e.snapshot_moved_part END,
      'looks', k.looks, 'right_share', k.right_share, 'claimed_share', k.claimed_share
    ),
    'next', jsonb_build_object(
      'look_at', t.next_look_at, 'due_at', CASE WHEN isfinite(d.due_at) THEN d.due_at END, 'reason', d.reason, 'is_due', t.owed, 'lane', t.owed_lane,
      'under_way', d.claim IS NOT NULL, 'held_until', d.held_until, 'deferrals', t.deferrals, 'failures', t.failures, 'watched', w.weight
    ),
    'prices', coalesce((
      SELECT jsonb_agg(jsonb_build_object(
        'size', p.size, 'price', p.price, 'since', p.changed_at, 'actionable', t.size_actionable AND p.price IS NOT NULL,
        'before', CASE WHEN h.id IS NOT NULL THEN jsonb_build_object('price', h.old_price, 'until', h.observed_at) END
      ) ORDER BY p.size)
      FROM catalog.prices p
      LEFT JOIN LATERAL (
        SELECT h.id, h.old_price, h.observed_at FROM catalog.price_history h WHERE h.sku = p.sku AND h.size = p.size ORDER BY h.id DESC LIMIT 1
      ) h ON true
      WHERE p.sku = s.sku
    ), '[]')
  )
  FROM catalog.skus s
  JOIN catalog.sku_trust t ON t.sku = s.sku
  LEFT JOIN catalog_internal.due d ON d.sku = s.sku
  LEFT JOIN catalog_internal.live_rates l ON l.sku = s.sku
  LEFT JOIN catalog_internal.watched w ON w.sku = s.sku
  CROSS JOIN catalog_internal.price_beliefs() e
  CROSS JOIN LATERAL (
    SELECT catalog_internal.cohort_of(s.price_source, s.in_manifest, coalesce(d.live, false), t.owed AND d.reason = 'changed') AS cohort
  ) c
  LEFT JOIN LATERAL (
    SELECT sum(looks)::bigint AS looks, sum(looks * right_share) / nullif(sum(looks), 0) AS right_share,
           sum(looks * claimed_share) / nullif(sum(looks), 0) AS claimed_share
    FROM catalog.calibration WHERE cohort = c.cohort
  ) k ON true
  WHERE s.sku = of_sku
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog.explain(text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.explain(text) TO catalog_reader;
  END IF;
END
$$;
--> statement-breakpoint
COMMENT ON FUNCTION catalog.explain(text) IS 'Where each number of a SKU comes from, as JSON: the answer, and why it was asked for; the report of the delta; how likely the prices are right, and what speaks against them; what is believed of its changes; the next refresh; each size with the price before. Null: the SKU is not known.';
