-- Prices say how likely they are right, and each refresh tests it.
CREATE TABLE "catalog_internal"."beliefs" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"live_moved_part" double precision DEFAULT 1 NOT NULL,
	"snapshot_moved_part" double precision DEFAULT 1 NOT NULL,
	"reported_moves" double precision DEFAULT 0.9 NOT NULL,
	"waiting_moves" double precision DEFAULT 0.02 NOT NULL,
	"missed_rate" double precision DEFAULT 0 NOT NULL,
	"move_rate" double precision DEFAULT 0.000231 NOT NULL,
	"live_prior_minutes" double precision DEFAULT 30 NOT NULL,
	"live_prior_variance" double precision DEFAULT 2 NOT NULL,
	"live_prior_surprise" double precision DEFAULT 0 NOT NULL,
	"live_prior_leverage" double precision DEFAULT 0 NOT NULL,
	"live_prior_noise" double precision DEFAULT 0 NOT NULL,
	CONSTRAINT "beliefs_one_row" CHECK ("catalog_internal"."beliefs"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."calibration_hours" (
	"hour" timestamp with time zone NOT NULL,
	"cohort" text COLLATE "C" NOT NULL,
	"bin" smallint NOT NULL,
	"looks" bigint NOT NULL,
	"right" bigint NOT NULL,
	"claimed" double precision NOT NULL,
	"minutes" double precision NOT NULL,
	"missed" bigint NOT NULL,
	CONSTRAINT "calibration_hours_hour_cohort_bin_pk" PRIMARY KEY("hour","cohort","bin")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."random_looks" (
	"sku" text COLLATE "C" PRIMARY KEY NOT NULL,
	"look_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "sizes_seen" real DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "sizes_moved" real DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "asked_because" text;--> statement-breakpoint
-- In steps: with a default of its own, Postgres 15.20 and others of its day add no column to a table whose rows functions take.
ALTER TABLE "catalog_internal"."settings" ADD COLUMN "actionable_confidence" double precision;--> statement-breakpoint
UPDATE "catalog_internal"."settings" SET "actionable_confidence" = 0.95;--> statement-breakpoint
ALTER TABLE "catalog_internal"."settings" ALTER COLUMN "actionable_confidence" SET DEFAULT 0.95, ALTER COLUMN "actionable_confidence" SET NOT NULL;
--> statement-breakpoint
CREATE TYPE catalog_internal.held_beliefs AS (
  live_moved_part float8, snapshot_moved_part float8, reported_moves float8, waiting_moves float8, missed_rate float8,
  move_rate float8, live_prior_minutes float8, silent_minutes float8, confidence float8, longest_wait interval
);
--> statement-breakpoint
INSERT INTO catalog_internal.beliefs DEFAULT VALUES;
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.beliefs IS 'One row: what refreshes have taught of prices in general; p_right is computed from it.';
COMMENT ON TABLE catalog_internal.calibration_hours IS 'Answered refreshes by hour, cohort and probability held before them (view catalog.calibration).';
COMMENT ON TABLE catalog_internal.random_looks IS 'Live SKUs drawn at random, to be refreshed whatever that is worth.';
--> statement-breakpoint
-- What goes with rows of catalog.skus, whoever deletes them: the ledger, prices with a line in their history, products, rates, draws. A trigger
-- and no foreign keys: these would check each row that a baseline or an answer inserts, and lock its SKU for it. The
-- ledger is locked in order of sku, as everyone locks it; history is written last.
CREATE OR REPLACE FUNCTION catalog_internal.forget_with_skus() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    TRUNCATE catalog_internal.due, catalog_internal.unreported_moves, catalog_internal.live_rates, catalog_internal.random_looks, catalog.products, catalog.prices;
    RETURN NULL;
  END IF;
  PERFORM FROM catalog_internal.due WHERE sku IN (SELECT sku FROM gone) ORDER BY sku FOR UPDATE;
  DELETE FROM catalog_internal.due USING gone WHERE due.sku = gone.sku;
  DELETE FROM catalog_internal.unreported_moves USING gone WHERE unreported_moves.sku = gone.sku;
  DELETE FROM catalog_internal.live_rates USING gone WHERE live_rates.sku = gone.sku;
  DELETE FROM catalog_internal.random_looks USING gone WHERE random_looks.sku = gone.sku;
  DELETE FROM catalog.products USING gone WHERE products.sku = gone.sku;
  IF EXISTS (SELECT FROM catalog.prices JOIN gone USING (sku)) THEN
    PERFORM catalog_internal.lock_changes(), catalog_internal.add_history_chunks();
    WITH priced AS (DELETE FROM catalog.prices USING gone WHERE prices.sku = gone.sku RETURNING prices.sku, prices.size, prices.price)
    INSERT INTO catalog.price_history (sku, size, old_price, new_price, observed_at)
    SELECT sku, size, price, NULL, now() FROM priced WHERE price IS NOT NULL ORDER BY sku, size;
    PERFORM pg_notify('catalog_changes', last_value::text) FROM catalog_internal.change_positions;
  END IF;
  RETURN NULL;
END
$$;
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
-- How what is known of a SKU's price gets out of date: `live` and `unlisted` by a rate of their own, as nobody reports their moves,
-- `snapshot` when a snapshot is built, which the delta reports. `reported` has been, and was not asked for since.
-- A single expression, as snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.cohort_of(price_source text, in_manifest boolean, counts_as_live boolean, is_reported boolean)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN price_source IS NOT DISTINCT FROM 'live' OR counts_as_live THEN 'live'
    WHEN NOT in_manifest THEN 'unlisted'
    WHEN is_reported THEN 'reported'
    ELSE 'snapshot'
  END;
END;
--> statement-breakpoint
-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.cohort_of(text, boolean, boolean, boolean) TO PUBLIC;
--> statement-breakpoint
-- What the probability of a price depends on that is the same for all SKUs, computed once a query (as trust_terms): beside the
-- row of beliefs, for how many minutes longer than between two polls nothing has reported moves of snapshot-priced SKUs (without end
-- where reports say nothing), the bound of `actionable`, and how long the plan of live refreshes has a SKU wait at most.
CREATE OR REPLACE FUNCTION catalog_internal.price_beliefs() RETURNS catalog_internal.held_beliefs
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  s catalog_internal.sync;
  l catalog_internal.live_plan;
  b catalog_internal.beliefs;
  held catalog_internal.held_beliefs;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO s FROM catalog_internal.sync;
  SELECT * INTO l FROM catalog_internal.live_plan;
  SELECT * INTO b FROM catalog_internal.beliefs;
  held.live_moved_part := b.live_moved_part;
  held.snapshot_moved_part := b.snapshot_moved_part;
  held.reported_moves := b.reported_moves;
  held.waiting_moves := b.waiting_moves;
  held.missed_rate := b.missed_rate;
  held.move_rate := b.move_rate;
  held.live_prior_minutes := b.live_prior_minutes;
  held.silent_minutes := CASE
    WHEN s.manifest_applied_at IS NULL OR catalog_internal.catalog_state(s) = 'stale' THEN 'infinity'
    ELSE greatest(
      0,
      (extract(epoch FROM now() - coalesce(s.delta_checked_at, s.manifest_applied_at)) - g.delta_interval) / 60,
      extract(epoch FROM now() - l.incident_since) / 60
    )
  END;
  held.confidence := g.actionable_confidence;
  held.longest_wait := make_interval(secs => g.live_interval + coalesce(l.max_interval_minutes, 0) * 60);
  RETURN held;
END
$$;
--> statement-breakpoint
-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.price_beliefs() TO PUBLIC;
--> statement-breakpoint
-- The probability that the partner, asked now, would answer what it answered `minutes` ago: for a SKU as a whole, or for one of
-- its sizes, of which only a part moves when the SKU does. `rate`: what its own refreshes have taught, null where none has.
--
-- By a rate of its own: moves come by chance at a rate of which a gamma distribution is believed (alpha, beta in minutes), so that
-- none comes in t minutes with (1 + t / beta) ^ -alpha. Rates are learned from one move in 120 minutes on, whatever the market
-- (src/sync/live/policy.ts); here that part of beta counts as what all refreshes have taught of such SKUs (src/store/rate-prior.ts).
-- Snapshot-priced: the product of three: no move that waits to be reported, or of which a report is there; none that is never
-- reported; and none since reports fell silent, by the rate of all, which differs between SKUs as a gamma distribution of shape 1/2.
--
-- A single expression, so that the planner sees through it. Bounded below by exp(-60), as a real is no number beyond exp(-87).
CREATE OR REPLACE FUNCTION catalog_internal.p_right(
  cohort text, of_size boolean, minutes float8, rate catalog_internal.live_rates, held catalog_internal.held_beliefs
) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN minutes IS NULL THEN NULL
    WHEN cohort IN ('live', 'unlisted')
      THEN exp(-least(60, coalesce(rate.alpha, 1) * ln(
        1 + minutes / (coalesce(rate.beta, 120) + least(120, coalesce(rate.beta, 120)) * (held.live_prior_minutes / 120 - 1))
          * CASE WHEN of_size THEN (coalesce(rate.sizes_moved, 0) + 20 * held.live_moved_part) / (coalesce(rate.sizes_seen, 0) + 20) ELSE 1 END
      )))
    ELSE (1 - CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END * CASE WHEN cohort = 'reported' THEN held.reported_moves ELSE held.waiting_moves END)
      * exp(-least(60, held.missed_rate * minutes * CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END))
      * power(1 + 2 * held.move_rate * least(minutes, held.silent_minutes) * CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END, -0.5)
  END;
END;
--> statement-breakpoint
-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.p_right(text, boolean, float8, catalog_internal.live_rates, catalog_internal.held_beliefs) TO PUBLIC;
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
       r.p_right::real AS p_right,
       r.size_p_right::real AS size_p_right,
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
  SELECT CASE WHEN s.state = 'priced' AND s.priced_at <= u.believable_until
              THEN greatest(0, extract(epoch FROM now() - s.priced_at)::float8 / 60)
         END AS minutes,
         catalog_internal.cohort_of(s.price_source, s.in_manifest, coalesce(d.live, false), coalesce(k.owed AND d.reason = 'changed', false)) AS cohort
) h
CROSS JOIN LATERAL (
  SELECT catalog_internal.p_right(h.cohort, false, h.minutes, l, e) AS p_right,
         catalog_internal.p_right(h.cohort, true, h.minutes, l, e) AS size_p_right
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
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a refresh is due: new, changed, live, unlisted (not in_manifest), sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command), clock (asked while the clock of Postgres was ahead); null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the due refresh is served: changed (urgent: also watched and refresh), live (also unlisted), new (also clock), deferred or error (waits, or has waited), metadata, sweep; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the refresh is due; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, its answer could not be read, or a call with this SKU alone failed.';
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused, or nothing counted within five minutes.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced, at a time that can be believed, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); owed (a re-price: see owed_reason; the next turn of a live SKU is none); past_target (too old: beyond target_age, and for a live SKU in its turns beyond LIVE_INTERVAL and the longest wait that is planned); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where its prices may be acted on: doubt is null, and p_right is ACTIONABLE_CONFIDENCE at least. A size without a readable price is no price all the same.';
COMMENT ON COLUMN catalog.sku_trust.p_right IS 'Probability that the partner, asked now, would answer every price of this SKU as it is here; null where it has none, or nobody knows when it was answered (doubt is clock). catalog.calibration says how well that has held.';
COMMENT ON COLUMN catalog.sku_trust.size_p_right IS 'The same for one of its sizes: when a SKU moves, not all of its sizes do.';
COMMENT ON COLUMN catalog.sku_trust.size_actionable IS 'The same as actionable for one of its sizes: doubt is null, and size_p_right is ACTIONABLE_CONFIDENCE at least.';
--> statement-breakpoint
-- `sku` is that of the SKU's row (through sku_trust), not of the prices: where many are named, `sku = any(…)` finds
-- these rows first, by their key, and then the rest; a condition on the SKU of the prices would reach none of the
-- other tables, which would be read from end to end.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT t.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       t.price_source, t.priced_at, p.changed_at, t.stale,
       t.size_actionable AND p.price IS NOT NULL AS actionable,
       t.size_p_right AS p_right
FROM catalog.sku_trust t
JOIN catalog.prices p ON p.sku = t.sku
LEFT JOIN catalog.products pr ON pr.sku = t.sku;
--> statement-breakpoint
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
COMMENT ON COLUMN catalog.current_prices.actionable IS 'True where the price may be acted on: there is one, catalog.sku_trust has no doubt of its SKU, and p_right is ACTIONABLE_CONFIDENCE at least.';
COMMENT ON COLUMN catalog.current_prices.p_right IS 'Probability that the partner, asked now, would answer this price; catalog.calibration says how well that has held.';
--> statement-breakpoint
-- The counts that src/store/calibration.ts keeps, as a seller reads them.
CREATE OR REPLACE VIEW catalog.calibration AS
SELECT c.cohort,
       ((ARRAY[0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])[c.bin + 1])::real AS tenth,
       sum(c.looks)::bigint AS looks,
       (sum(c."right") / sum(c.looks))::real AS right_share,
       (sum(c.claimed) / sum(c.looks))::real AS claimed_share,
       min(c.hour) AS since
FROM catalog_internal.calibration_hours c
WHERE c.hour > now() - interval '7 days' AND c.hour <= now()
GROUP BY c.cohort, c.bin;
--> statement-breakpoint
COMMENT ON VIEW catalog.calibration IS 'How well p_right has held in the last seven days. Each answered refresh is a test of the probability held just before it; where right_share is claimed_share, it was right as often as it said.';
COMMENT ON COLUMN catalog.calibration.cohort IS 'live, unlisted (no manifest lists it), snapshot, reported (by the delta, and asked for that), or random (live SKUs drawn at random to be refreshed, whatever that is worth: part of live, too); per SKU, and with "sizes" behind it per size.';
COMMENT ON COLUMN catalog.calibration.tenth IS 'Where the probability was: from this on (0, 0.1, … 0.9; the last tenth in three: 0.9, 0.95, 0.99).';
COMMENT ON COLUMN catalog.calibration.looks IS 'Answered refreshes whose probability was there: of SKUs, or of sizes.';
COMMENT ON COLUMN catalog.calibration.right_share IS 'Part of them that found the price as it was held.';
COMMENT ON COLUMN catalog.calibration.claimed_share IS 'Mean of the probabilities held before them.';
COMMENT ON COLUMN catalog.calibration.since IS 'Since when is counted.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller.
CREATE OR REPLACE FUNCTION catalog.skus_past_target(most integer DEFAULT 1000) RETURNS SETOF catalog.sku_trust
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000
BEGIN ATOMIC
  SELECT t.* FROM catalog.sku_trust t WHERE t.past_target ORDER BY t.priced_at LIMIT most;
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog.skus_past_target(integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.skus_past_target(integer) TO catalog_reader;
  END IF;
END
$$;
--> statement-breakpoint
COMMENT ON FUNCTION catalog.skus_past_target(integer) IS 'SKUs whose prices are older than their target, oldest first, at most so many: rows of catalog.sku_trust.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller. Brand and model are
-- compared by their beginnings too, because the index products_brand_model holds only these.
CREATE OR REPLACE FUNCTION catalog.lowest_prices(
  of_size text, of_brand text DEFAULT NULL, of_model text DEFAULT NULL, of_size_type text DEFAULT NULL,
  most integer DEFAULT 100, only_actionable boolean DEFAULT true
) RETURNS TABLE (sku text, size text, price integer, size_type text, name text, brand text, model text, priced_at timestamptz, actionable boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
BEGIN ATOMIC
  SELECT p.sku, p.size, p.price, pr.size_map_size_type, pr.name, pr.brand, pr.model, t.priced_at, t.size_actionable
  FROM catalog.products pr
  JOIN catalog.prices p ON p.sku = pr.sku AND p.size = of_size AND p.price IS NOT NULL
  JOIN catalog.sku_trust t ON t.sku = pr.sku
  WHERE (of_brand IS NULL OR left(pr.brand, 200) COLLATE "C" = left(of_brand, 200) AND pr.brand = of_brand)
    AND (of_model IS NULL OR left(pr.model, 200) COLLATE "C" = left(of_model, 200) AND pr.model = of_model)
    AND (of_size_type IS NULL OR pr.size_map_size_type = of_size_type)
    AND (t.size_actionable OR NOT only_actionable)
  ORDER BY p.price, p.sku
  LIMIT most;
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) TO catalog_reader;
  END IF;
END
$$;
--> statement-breakpoint
COMMENT ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) IS 'Who offers a size cheapest: SKUs with that size key by price, of one brand, model or size type where given (exact spelling), at most so many. Prices that are not actionable are left out unless only_actionable is false.';
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
