-- The clock of Postgres may be wrong, and be set right: what it wrote while it was ahead is put right, and order is by claims.
CREATE TABLE "catalog_internal"."clock" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"high_water" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"steady_since" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"set_back_seconds" double precision,
	"ahead_seconds" double precision,
	CONSTRAINT "clock_one_row" CHECK ("catalog_internal"."clock"."id")
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "asked_claim" bigint;--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync" ADD COLUMN "seen_claim" bigint;--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync" DROP COLUMN "seen_at";
--> statement-breakpoint
INSERT INTO catalog_internal.clock DEFAULT VALUES;
--> statement-breakpoint
-- The lane that a reason is served in; the planner (src/sync/reprice/plan.ts) serves lower numbers first.
CREATE OR REPLACE FUNCTION catalog_internal.lane_of(reason text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE reason
    WHEN 'changed' THEN 1 WHEN 'watched' THEN 1 WHEN 'refresh' THEN 1
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
-- When that was which a clock that has been set back by so much wrote as `at`: nothing has happened after `moment`, which is now.
CREATE OR REPLACE FUNCTION catalog_internal.happened(at timestamptz, moment timestamptz, shift interval) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN at > moment AND at < 'infinity' THEN least(moment, at - shift) ELSE at END;
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.happened(timestamptz, timestamptz, interval) FROM PUBLIC;
--> statement-breakpoint
-- Until when that is to be waited for which a clock that has been set back by so much wrote as `at`; `moment` is now. Where it was
-- written before the clock was ahead, that is too early by so much: waits are never lengthened by a wrong clock.
CREATE OR REPLACE FUNCTION catalog_internal.awaited(at timestamptz, moment timestamptz, shift interval) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN at > moment AND at < 'infinity' THEN greatest(moment, at - shift) ELSE at END;
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.awaited(timestamptz, timestamptz, interval) FROM PUBLIC;
--> statement-breakpoint
-- Counts what the account's other services have sent while the clock was ahead, in the window before it was set back, as sent now.
CREATE OR REPLACE FUNCTION catalog_internal.recount_others(moment timestamptz, shift interval) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part bigint := catalog_internal.others_part();
  present bigint := floor(extract(epoch FROM moment) * 1000);
  number bigint := present / part;
  last bigint := present + floor(extract(epoch FROM shift) * 1000);
  counter regclass;
  counted bigint;
  sent bigint := 0;
BEGIN
  FOR i IN 0..15 LOOP
    counter := format('catalog_internal.others_sent_%s', i)::regclass;
    counted := pg_sequence_last_value(counter);
    CONTINUE WHEN counted IS NULL OR counted >> 20 <= present;
    IF counted >> 20 > last - 16 * part THEN
      sent := sent + (counted & 1048575);
    END IF;
    -- As if it had counted long ago.
    PERFORM setval(counter, 1);
  END LOOP;
  IF sent > 0 THEN
    counter := format('catalog_internal.others_sent_%s', number % 16)::regclass;
    counted := pg_sequence_last_value(counter);
    PERFORM setval(counter, CASE WHEN counted >> 20 = number * part THEN counted + sent ELSE number * part << 20 | sent END);
  END IF;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.recount_others(timestamptz, interval) FROM PUBLIC;
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
  SELECT high_water - moment INTO shift FROM catalog_internal.clock;
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
  IF asked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(asked, 'clock');
  END IF;
  RETURN ahead[cardinality(ahead)];
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.redate_skus(interval, text, integer) FROM PUBLIC;
--> statement-breakpoint
-- Puts right when a clock that was ahead has observed changes. Their positions stay.
CREATE OR REPLACE FUNCTION catalog_internal.redate_history(shift interval) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
BEGIN
  UPDATE catalog.price_history SET observed_at = catalog_internal.happened(observed_at, moment, shift) WHERE observed_at > moment;
  UPDATE catalog.product_history SET observed_at = catalog_internal.happened(observed_at, moment, shift) WHERE observed_at > moment;
  UPDATE catalog_internal.history_milestones SET at = catalog_internal.happened(at, moment, shift) WHERE at > moment;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.redate_history(interval) FROM PUBLIC;
--> statement-breakpoint
-- What claims to have been later was written by a clock that was wrong. Two seconds from now; and while Postgres's clock is
-- known to be wrong, or what it has written while it was ahead is being put right, nothing is believed. The present time, not that of the
-- reader's transaction, which may have begun long ago.
CREATE OR REPLACE FUNCTION catalog_internal.believable_until() RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp() + interval '2 seconds';
BEGIN
  RETURN CASE
    WHEN EXISTS (
      SELECT FROM catalog_internal.clock
      WHERE high_water > moment OR set_back_seconds IS NOT NULL OR ahead_seconds IS NOT NULL
    ) THEN '-infinity'
    ELSE moment
  END;
END
$$;
--> statement-breakpoint
-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.believable_until() TO PUBLIC;
--> statement-breakpoint
-- Whether Postgres's clock has run for an hour under a daemon's eyes, and did not jump: before that nothing is thrown away for its age.
CREATE OR REPLACE FUNCTION catalog_internal.clock_is_steady() RETURNS boolean
LANGUAGE sql STABLE
RETURN (
  SELECT set_back_seconds IS NULL AND ahead_seconds IS NULL AND steady_since <= clock_timestamp() - interval '1 hour'
    AND high_water BETWEEN clock_timestamp() - interval '1 hour' AND clock_timestamp() + interval '2 seconds'
  FROM catalog_internal.clock
);
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.clock_is_steady() FROM PUBLIC;
--> statement-breakpoint
-- What trust in a price depends on that is the same for all SKUs, computed once a query. PL/pgSQL plans a statement
-- once a session, and planning is most of the cost of reading one SKU. One SELECT a table, because the planner does
-- not know that these tables have one row each, and prepares a join for millions. SECURITY DEFINER: the view calls it
-- as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.trust_terms(
  OUT live_target interval, OUT snapshot_target interval, OUT incident boolean, OUT catalog_doubt text,
  OUT at_work boolean, OUT backoff_until timestamptz
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
  snapshot_target := make_interval(secs => catalog_internal.snapshot_target(g));
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  catalog_doubt := CASE
    WHEN s.manifest_applied_at IS NULL THEN 'no_baseline'
    WHEN s.catalog_fault IS NULL
         AND coalesce(s.delta_checked_at, s.manifest_applied_at)
           NOT BETWEEN now() - make_interval(secs => catalog_internal.delta_late_after(g)) AND clock_timestamp() + interval '1 minute'
      THEN 'delta_late'
    WHEN catalog_internal.catalog_state(s) = 'stale' THEN 'catalog_stale'
  END;
  -- With a daemon there, this task ends every minute.
  at_work := p.refusal IS NULL
    AND coalesce((SELECT finished_at BETWEEN now() - interval '5 minutes' AND clock_timestamp() + interval '1 minute' FROM catalog_internal.tasks WHERE task = 'maintenance'), false);
  backoff_until := CASE WHEN p.backoff_until > now() THEN p.backoff_until END;
END
$$;
--> statement-breakpoint
-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.trust_terms() TO PUBLIC;
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
       c.doubt IS NULL AS actionable
FROM catalog.skus s
LEFT JOIN catalog_internal.due d ON d.sku = s.sku
CROSS JOIN catalog_internal.trust_terms() t
CROSS JOIN catalog_internal.believable_until() AS u(believable_until)
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
           WHEN s.priced_at > u.believable_until OR k.owed AND d.reason = 'clock' THEN 'clock'
           WHEN k.reprice_due THEN 'owed'
           WHEN b.past_target OR b.stale THEN 'past_target'
           WHEN k.owed THEN 'size_type'
           WHEN t.incident AND s.priced_at < now() - t.live_target THEN 'incident'
           -- While nothing reports its moves, it is as good as a live one: by age.
           WHEN s.price_source IS DISTINCT FROM 'live'
                AND (t.catalog_doubt = 'no_baseline' OR s.priced_at < now() - t.live_target) THEN t.catalog_doubt
         END AS doubt
) c;
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
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); owed (a re-price: see owed_reason); past_target (too old); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where nothing speaks against acting on its prices: doubt is null. Implies fresh. A size without a readable price is no price all the same.';
