-- The present time, for `(SELECT catalog_internal.moment())`: that is evaluated once in each execution of a query, so that all
-- of its rows are judged at one moment, also by parallel workers. statement_timestamp() is the time of the client's
-- message: within a function, a procedure, a DO block or a query of several statements it stands still, while each
-- statement of theirs sees what was committed since. STABLE, as a query is planned otherwise where something in it
-- is volatile (a CTE of sku_trust would be read as a whole); in PL/pgSQL, as the planner sees through none.
CREATE OR REPLACE FUNCTION catalog_internal.moment() RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN clock_timestamp();
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.moment() TO PUBLIC;
--> statement-breakpoint
-- Whether a SKU waits after the partner has deferred it, or for its second answer: until then it does not
-- count as due, though its due time has come. After an error it is due. A single expression, as
-- snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.is_waiting(d catalog_internal.due, moment timestamptz DEFAULT statement_timestamp()) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT d.claim IS NULL AND (d.deferrals > 0 OR d.failures = 0 AND (d.doubt IS NOT NULL OR d.reason = 'doubted')) AND coalesce(d.held_until > moment, false);
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.is_waiting(catalog_internal.due, timestamptz) TO PUBLIC;
--> statement-breakpoint
-- Whether a SKU has been reported to have changed, and was not asked for since; also one that is out of
-- scope, which nobody asks for. False where the ledger does not know it. A single expression, as
-- snapshot_target. catalog.sku_trust has it written out: each function that its planner has to see through is
-- paid for with every SKU that is looked up.
CREATE OR REPLACE FUNCTION catalog_internal.is_reported(d catalog_internal.due, moment timestamptz DEFAULT statement_timestamp()) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(coalesce(d.outside_due_at, d.due_at) <= moment AND d.reason = 'changed', false);
END;

REVOKE ALL ON FUNCTION catalog_internal.is_reported(catalog_internal.due, timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- Whether the last delta check is older than delta_late_after allows, or dated in the future, which tells
-- nothing of when it was: a clock was set; or whether the manifest route refutes what the delta says, because
-- it names a newer snapshot than the delta leads to, or other counts of the same one. Null before the first
-- baseline. Health, catalog_state and the doubt delta_late go by this. Writers date by the beginning of their
-- transaction, which may be after that of the reader: hence the present time, and with it VOLATILE, as the
-- planner sees through no STABLE function that calls clock_timestamp().
CREATE OR REPLACE FUNCTION catalog_internal.delta_is_late(s catalog_internal.sync, g catalog_internal.settings) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT s.delta_doubt IS NOT DISTINCT FROM 'behind' OR s.catalog_differs_at IS NOT NULL OR coalesce(s.delta_checked_at, s.manifest_applied_at)
    NOT BETWEEN clock_timestamp() - make_interval(secs => catalog_internal.delta_late_after(g)) AND clock_timestamp() + interval '1 minute';
END;

REVOKE ALL ON FUNCTION catalog_internal.delta_is_late(catalog_internal.sync, catalog_internal.settings) FROM PUBLIC;
--> statement-breakpoint
-- 'none' before the first baseline; 'stale' while the catalog routes do not report changes, or cannot be
-- trusted to; else 'ok'. A token that moved proves that the partner's catalog builder works, until the
-- manifest route is checked again. SECURITY DEFINER, because a view reads its tables as its owner but calls
-- its functions as its reader, who may not read the settings. PL/pgSQL plans its statement once a session,
-- and sku_trust calls it in every query. It only reads, so queries may use parallel workers.
CREATE OR REPLACE FUNCTION catalog_internal.catalog_state(s catalog_internal.sync) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  RETURN CASE
    WHEN s.manifest_applied_at IS NULL THEN 'none'
    WHEN s.catalog_fault IS NOT NULL THEN 'stale'
    WHEN s.chain_broken_at IS NOT NULL AND s.manifest_refused IS NOT NULL THEN 'stale'
    WHEN greatest(s.snapshot_generated_at, s.snapshot_moved_at)
         < clock_timestamp() - make_interval(secs => g.catalog_stale_after) THEN 'stale'
    WHEN catalog_internal.delta_is_late(s, g) THEN 'stale'
    ELSE 'ok'
  END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.catalog_state(catalog_internal.sync) TO PUBLIC;
--> statement-breakpoint
-- What the probability of a price depends on that is the same for all SKUs, computed once a query (as
-- trust_terms): beside the row of beliefs, for how many minutes longer than between two polls nothing has
-- reported moves of snapshot-priced SKUs (without end where reports say nothing; while the delta is distrusted, since
-- the manifest route last said that nothing is newer), the bound of `actionable`, and how long the plan of live
-- refreshes has a SKU wait at most.
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
  held.late_moves := b.late_moves;
  held.missed_rate := b.missed_rate;
  held.move_rate := b.move_rate;
  held.live_prior_minutes := b.live_prior_minutes;
  held.silent_minutes := CASE
    WHEN s.manifest_applied_at IS NULL OR catalog_internal.catalog_state(s) = 'stale' THEN 'infinity'
    ELSE greatest(
      0,
      (extract(epoch FROM clock_timestamp() - coalesce(s.delta_checked_at, s.manifest_applied_at)) - g.delta_interval) / 60,
      CASE WHEN s.delta_doubt = 'distrusted' THEN (extract(epoch FROM clock_timestamp() - CASE WHEN s.seen_snapshot_id = s.snapshot_id
        THEN greatest(s.token_at, s.catalog_checked_at) ELSE s.token_at END) - g.delta_interval) / 60 END,
      extract(epoch FROM clock_timestamp() - l.incident_since) / 60
    )
  END;
  held.confidence := g.actionable_confidence;
  held.longest_wait := make_interval(secs => g.live_interval + coalesce(l.max_interval_minutes, 0) * 60);
  RETURN held;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.price_beliefs() TO PUBLIC;
--> statement-breakpoint
-- Seconds of work at the present pace ahead of a refresh that is due now: by the number of its lane, and at the place
-- after the last lane for one that counts as live. As if everything that is at least as urgent went first. Null where
-- the backlog was not counted in the last five minutes.
CREATE OR REPLACE FUNCTION catalog_internal.seconds_ahead() RETURNS float8[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  p catalog_internal.pace;
  backlog jsonb;
  cheap_per_second float8;
  live_per_second float8;
  lanes CONSTANT integer := cardinality(catalog_internal.lane_names());
BEGIN
  SELECT counts -> 'due' INTO backlog FROM catalog_internal.catalog_counts WHERE counted_at > clock_timestamp() - interval '5 minutes';
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  cheap_per_second := g.bulk_max_skus * catalog_internal.present_ceiling(p) / 60;
  live_per_second := least((SELECT per_minute FROM catalog_internal.live_ceiling),
    coalesce((SELECT live_budget FROM catalog_internal.sync), g.bulk_live_budget) * catalog_internal.present_ceiling(p)) / 60;
  RETURN (
    WITH owed AS MATERIALIZED (
      SELECT r ->> 'reason' AS reason, (r ->> 'count')::float8 AS skus FROM jsonb_array_elements(backlog) AS r
    )
    SELECT array_agg(coalesce(CASE
               WHEN lane <= lanes THEN (SELECT sum(skus) FROM owed WHERE reason NOT IN ('live', 'deferred') AND catalog_internal.lane_of(reason) <= lane)
               ELSE (SELECT sum(skus) FROM owed WHERE reason IN ('live', 'deferred'))
             END, 0) / nullif(CASE WHEN lane <= lanes THEN cheap_per_second ELSE live_per_second END, 0) ORDER BY lane)
    FROM generate_series(1, lanes + 1) AS lane WHERE backlog IS NOT NULL
  );
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.seconds_ahead() TO PUBLIC;
--> statement-breakpoint
-- What a ring of hours has counted in the last day: its first hour is the one that began at `hour`, as it was
-- written last.
CREATE OR REPLACE FUNCTION catalog_internal.last_day(ring integer[], hour timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(sum(n), 0)::bigint FROM unnest(ring) WITH ORDINALITY AS r(n, place)
  WHERE place <= 24 - floor(extract(epoch FROM clock_timestamp() - hour) / 3600);
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.last_day(integer[], timestamptz) TO PUBLIC;
--> statement-breakpoint
-- What trust in a price depends on that is the same for all SKUs, computed once a query; `moment` is that at which it
-- judges (catalog_internal.moment). PL/pgSQL plans a statement
-- once a session, and planning is most of the cost of reading one SKU. One SELECT a table, because the planner does
-- not know that these tables have one row each, and prepares a join for millions. SECURITY DEFINER: the view calls it
-- as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.trust_terms(
  INOUT moment timestamptz DEFAULT clock_timestamp(), OUT live_target interval, OUT snapshot_target interval, OUT incident boolean, OUT catalog_doubt text,
  OUT at_work boolean, OUT backoff_until timestamptz
)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  s catalog_internal.sync;
  p catalog_internal.pace;
  paused_until timestamptz;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO s FROM catalog_internal.sync;
  SELECT * INTO p FROM catalog_internal.pace;
  SELECT z.until INTO paused_until FROM catalog_internal.pause z WHERE catalog_internal.pause_holds(z);
  live_target := make_interval(secs => g.live_interval);
  snapshot_target := make_interval(secs => catalog_internal.snapshot_target(g));
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  catalog_doubt := CASE
    WHEN s.manifest_applied_at IS NULL THEN 'no_baseline'
    WHEN s.catalog_fault IS NULL AND catalog_internal.delta_is_late(s, g) THEN 'delta_late'
    WHEN catalog_internal.catalog_state(s) = 'stale' THEN 'catalog_stale'
  END;
  -- With a daemon there, this task ends every minute.
  at_work := p.refusal IS NULL AND paused_until IS DISTINCT FROM 'infinity'
    AND coalesce((SELECT finished_at BETWEEN moment - interval '5 minutes' AND clock_timestamp() + interval '1 minute' FROM catalog_internal.tasks WHERE task = 'maintenance'), false);
  -- A pause that ends by itself is waited for as a back-off is.
  backoff_until := greatest(CASE WHEN p.backoff_until > moment THEN p.backoff_until END, paused_until);
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.trust_terms(timestamptz) TO PUBLIC;
--> statement-breakpoint
-- How far each SKU's prices can be trusted, for every other reader of it. `stale` is what current_prices shows;
-- `fresh` is what the metric fresh_skus counts; `doubt` also covers what these two know nothing of: the catalog as a
-- whole, and what the sizes mean.
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
            WHEN NOT k.owed THEN greatest(least(d.due_at, CASE WHEN d.promised_at > t.moment THEN d.promised_at WHEN d.promised_at <= t.moment THEN t.moment END), d.held_until, t.backoff_until)
            WHEN d.held_until > t.moment THEN greatest(CASE WHEN d.claim IS NULL THEN d.held_until ELSE t.moment END, t.backoff_until)
            ELSE greatest(t.moment, t.backoff_until)
                   + make_interval(secs => (SELECT catalog_internal.seconds_ahead())[CASE WHEN d.live THEN cardinality(catalog_internal.lane_names()) + 1 ELSE d.lane END])
       END AS next_look_at,
       b.stale,
       s.state = 'priced' AND s.priced_at <= u.believable_until AND NOT b.stale AND NOT b.past_target AND d.outside_due_at IS NULL AS fresh,
       c.doubt,
       coalesce(c.doubt IS NULL AND r.p_right >= e.confidence, false) AS actionable,
       CASE WHEN h.has_age THEN r.p_right::real END AS p_right,
       CASE WHEN h.has_age THEN r.size_p_right::real END AS size_p_right,
       coalesce(c.doubt IS NULL AND r.size_p_right >= e.confidence, false) AS size_actionable
FROM catalog.skus s
LEFT JOIN catalog_internal.due d ON d.sku = s.sku
LEFT JOIN catalog_internal.live_rates l ON l.sku = s.sku
CROSS JOIN catalog_internal.trust_terms((SELECT catalog_internal.moment())) t
CROSS JOIN catalog_internal.price_beliefs() e
CROSS JOIN catalog_internal.believable_until() AS u(believable_until)
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
           WHEN s.priced_at > u.believable_until OR k.owed AND d.reason = 'clock' THEN 'clock'
           WHEN d.doubt IS NOT NULL THEN d.doubt
           -- What an incident has put into the turns of live SKUs may have been reported before, and asked for by nobody since.
           -- Where somebody has deleted its row of the ledger, nobody knows what had been reported.
           WHEN d.sku IS NULL OR CASE WHEN k.in_turn THEN date_trunc('milliseconds', s.reported_at) > s.asked_at ELSE k.reprice_due END THEN 'owed'
           -- Within the plan, a live price is judged by its probability, and not by its age.
           WHEN CASE WHEN k.in_turn THEN coalesce(s.priced_at, '-infinity') < t.moment - e.longest_wait
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
  SELECT s.state = 'priced' AND s.priced_at <= u.believable_until AS has_age,
         greatest(0, date_part('epoch', t.moment - s.priced_at) / 60) AS minutes,
         s.price_source IS NOT DISTINCT FROM 'live' OR NOT s.in_manifest OR coalesce(d.live OR d.missed_moves > 0, false) AS by_rate,
         -- Null while its answer to a report, which had nothing new, is to be seen again (p_right).
         CASE WHEN coalesce(d.outside_due_at, d.due_at) <= t.moment AND d.reason = 'changed' THEN true WHEN d.again_at IS NULL THEN false END AS reported
) h
CROSS JOIN LATERAL (
  SELECT catalog_internal.p_right(h.by_rate, h.reported, false, h.minutes, l, e) AS p_right,
         catalog_internal.p_right(h.by_rate, h.reported, true, h.minutes, l, e) AS size_p_right
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
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused or paused without an end, or nothing counted within five minutes.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced and in scope, at a time that can be believed, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: out_of_scope (catalog.scope says that it is not priced, so its prices only get older); pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); implausible (the partner says it, but it is hardly a price: catalog.explain says why), mass-move (prices of many SKUs have moved implausibly), both until a second answer, five minutes later or more, says the same; owed (a re-price: see owed_reason; the next turn of a live SKU is none, unless it was reported since it was asked; nor is anything known to be due of a SKU whose row of the ledger somebody has deleted, until it is made anew); past_target (too old: beyond target_age, and for a live SKU in its turns beyond LIVE_INTERVAL and the longest wait that is planned); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where its prices may be acted on: doubt is null, and p_right is ACTIONABLE_CONFIDENCE at least. A size without a readable price is no price all the same.';
COMMENT ON COLUMN catalog.sku_trust.p_right IS 'Probability that the partner, asked now, would answer every price of this SKU as it is here; null where it has none, or nobody knows when it was answered (doubt is clock). catalog.calibration says how well that has held.';
COMMENT ON COLUMN catalog.sku_trust.size_p_right IS 'The same for one of its sizes: when a SKU moves, not all of its sizes do.';
COMMENT ON COLUMN catalog.sku_trust.size_actionable IS 'The same as actionable for one of its sizes: doubt is null, and size_p_right is ACTIONABLE_CONFIDENCE at least.';
--> statement-breakpoint
-- One row. The pacer makes its own row when it first starts, and the pause the first time that somebody asks
-- for one: hence the LEFT JOINs. LIMIT 1, as the planner takes tables of one row that nothing has analyzed for
-- hundreds of rows each: joined they are millions, and a server compiles the query for seconds (jit).
CREATE OR REPLACE VIEW catalog.sync_status AS
-- What is counted by it in one statement is counted at one moment.
WITH m AS MATERIALIZED (SELECT catalog_internal.moment() AS moment)
SELECT (s.one).snapshot_id, (s.one).snapshot_generated_at, (s.one).manifest_applied_at, (s.one).delta_checked_at,
       k.skus, k.live_skus - o.live_skus AS live_skus, k.pending_skus - o.pending_skus AS pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p.one) AS requests_per_minute,
       CASE WHEN (p.one).backoff_until > (SELECT moment FROM m) THEN (p.one).backoff_until END AS backing_off_until,
       catalog_internal.catalog_state(s.one) AS catalog_state,
       l.incident_since,
       (p.one).refusal, (p.one).refused_since, coalesce((p.one).episodes, 0) AS refusals,
       z.since AS paused_since, z.until AS paused_until,
       k.skus - o.skus AS skus_in_scope
FROM (SELECT y AS one FROM catalog_internal.sync y LIMIT 1) s
CROSS JOIN (SELECT incident_since FROM catalog_internal.live_plan LIMIT 1) l
LEFT JOIN (SELECT y AS one FROM catalog_internal.pace y LIMIT 1) p ON true
LEFT JOIN (SELECT y.since, y.until FROM catalog_internal.pause y WHERE catalog_internal.pause_holds(y) LIMIT 1) z ON true
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= (SELECT moment FROM m) AND NOT catalog_internal.is_waiting(l, (SELECT moment FROM m))) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0 AND outside_due_at IS NULL) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= (SELECT moment FROM m) AND NOT catalog_internal.is_waiting(l, (SELECT moment FROM m))) AS oldest_due_at
  FROM catalog_internal.due l
) d
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE s.price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE s.state = 'pending') AS pending_skus
  FROM catalog_internal.due l JOIN catalog.skus s ON s.sku = l.sku
  WHERE (SELECT scoped FROM catalog_internal.scoping) AND l.outside_due_at IS NOT NULL
) o;

COMMENT ON VIEW catalog.sync_status IS 'How the mirror stands, one row.';
COMMENT ON COLUMN catalog.sync_status.snapshot_id IS 'Snapshot that the mirror follows: the delta is asked from there.';
COMMENT ON COLUMN catalog.sync_status.snapshot_generated_at IS 'Build time of the newest snapshot that the manifest route told of.';
COMMENT ON COLUMN catalog.sync_status.manifest_applied_at IS 'When a manifest was last applied (baseline).';
COMMENT ON COLUMN catalog.sync_status.delta_checked_at IS 'When the delta was last asked for and applied.';
COMMENT ON COLUMN catalog.sync_status.skus IS 'SKUs in the mirror, in any state.';
COMMENT ON COLUMN catalog.sync_status.live_skus IS 'SKUs in scope of price_source live.';
COMMENT ON COLUMN catalog.sync_status.pending_skus IS 'SKUs in scope that are not priced yet.';
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
COMMENT ON COLUMN catalog.sync_status.paused_since IS 'Since when `catalog-mirror pause` keeps all requests back; null: not paused.';
COMMENT ON COLUMN catalog.sync_status.paused_until IS 'When the pause ends by itself; infinity: with `catalog-mirror resume`; null: not paused.';
COMMENT ON COLUMN catalog.sync_status.skus_in_scope IS 'SKUs that are in scope: with MIRROR_SCOPE=catalog all, else those that the rules of catalog.scope include.';
--> statement-breakpoint
-- Each promise of a price's age, and what becomes of it. Which of them fit is weighed once a minute and after
-- each change (weigh_promises).
CREATE OR REPLACE VIEW catalog.promises AS
SELECT l.sku, l.max_age,
       k.is_read AND w.feasible AND d.outside_due_at IS NULL AND c.hindered IS NULL AS feasible,
       -- What is late at this moment, and would be a case with its answer, counts as broken.
       (catalog_internal.last_day(p.kept, p.hour) / nullif(catalog_internal.last_day(p.cases, p.hour) + coalesce(o.cases, 0), 0)::double precision)::real AS kept_share,
       CASE
         WHEN NOT k.is_read THEN 'not read by the mirror yet'
         WHEN s.state = 'removed' THEN 'removed'
         WHEN s.state = 'not_found' THEN 'not found'
         WHEN d.outside_due_at IS NOT NULL THEN 'out of scope'
         WHEN NOT w.feasible THEN 'the account cannot'
         WHEN c.hindered IS NOT NULL THEN c.hindered
         WHEN s.state = 'pending' THEN 'not priced yet'
         WHEN d.deferrals > 0 THEN 'deferred by the partner'
         WHEN d.failures > 0 OR d.largest_call IS NOT NULL THEN 'calls with it fail'
         WHEN d.doubt IS NOT NULL THEN 'waits for a second answer'
         WHEN o.cases > 0 THEN 'late'
       END AS because
FROM catalog.watchlist l
CROSS JOIN catalog_internal.promise_capacity() c
CROSS JOIN catalog_internal.moment() AS m(moment)
LEFT JOIN catalog_internal.watched w ON w.sku = l.sku
LEFT JOIN catalog.skus s ON s.sku = l.sku
LEFT JOIN catalog_internal.due d ON d.sku = l.sku
LEFT JOIN catalog_internal.promise_cases p ON p.sku = l.sku
CROSS JOIN LATERAL (SELECT coalesce(w.max_age = extract(epoch FROM l.max_age)::double precision, false) AND d.sku IS NOT NULL AS is_read) k
CROSS JOIN LATERAL (
  SELECT CASE WHEN k.is_read AND s.state = 'priced'
    THEN floor(extract(epoch FROM m.moment - greatest(s.priced_at, w.promised_since)) / w.max_age) END AS cases
) o
WHERE l.max_age IS NOT NULL;

DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT SELECT ON catalog.promises TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON VIEW catalog.promises IS 'Promises that you ask for in catalog.watchlist.max_age: whether each can be kept, how often it was, and what speaks against it.';
COMMENT ON COLUMN catalog.promises.sku IS 'As catalog.watchlist has it.';
COMMENT ON COLUMN catalog.promises.max_age IS 'The SKU is asked for again before its price is older than that.';
COMMENT ON COLUMN catalog.promises.feasible IS 'Whether it can be kept at present. Where not all can, those of the greatest weight are, and among equal ones those of the greatest max_age; any other SKU is refreshed as if nothing were promised.';
COMMENT ON COLUMN catalog.promises.kept_share IS 'The part of the refreshes of the last day that were committed before the price was older than max_age; one that came after n times max_age counts as n that did not. Null: there was none yet.';
COMMENT ON COLUMN catalog.promises.because IS 'What speaks against it at present: not read by the mirror yet (nor where WATCHLIST_MAX_SKUS leaves it out), removed, not found, out of scope, the account cannot, paused, backing off after a refusal, calls are failing, not priced yet, deferred by the partner, calls with it fail, waits for a second answer, late; null: nothing.';
--> statement-breakpoint
-- The counts that src/store/trust/calibration.ts keeps, as a seller reads them.
CREATE OR REPLACE VIEW catalog.calibration AS
SELECT c.cohort,
       ((ARRAY[0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])[c.bin + 1])::float8 AS tenth,
       sum(c.looks)::bigint AS looks,
       (sum(c."right") / sum(c.looks))::real AS right_share,
       (sum(c.claimed) / sum(c.looks))::real AS claimed_share,
       min(c.hour) AS since
FROM catalog_internal.calibration_hours c
WHERE c.hour > (SELECT catalog_internal.moment()) - interval '7 days' AND c.hour <= (SELECT catalog_internal.moment())
GROUP BY c.cohort, c.bin;

COMMENT ON VIEW catalog.calibration IS 'How well p_right has held in the last seven days. Each answered refresh is a test of the probability held just before it; where right_share is claimed_share, it was right as often as it said.';
COMMENT ON COLUMN catalog.calibration.cohort IS 'live, unlisted (no manifest lists it, or the delta has left out a change of it), snapshot, reported (by the delta, and asked for that), unreported (snapshot and reported in hours in which the delta told of nothing), again (asked a second time, as the answer to a report had nothing new), or random (live SKUs drawn at random to be refreshed, whatever that is worth: part of live, too); per SKU, and with "sizes" behind it per size.';
COMMENT ON COLUMN catalog.calibration.tenth IS 'Where the probability was: from this on (0, 0.1, … 0.9; the last tenth in three: 0.9, 0.95, 0.99).';
COMMENT ON COLUMN catalog.calibration.looks IS 'Answered refreshes whose probability was there: of SKUs, or of sizes.';
COMMENT ON COLUMN catalog.calibration.right_share IS 'Part of them that found the price as it was held.';
COMMENT ON COLUMN catalog.calibration.claimed_share IS 'Mean of the probabilities held before them.';
COMMENT ON COLUMN catalog.calibration.since IS 'Since when is counted.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so
-- that its names mean what they meant when it was made, whatever the search path of its caller.
CREATE OR REPLACE FUNCTION catalog.movers(within interval DEFAULT '1 hour', most integer DEFAULT 100)
RETURNS TABLE (sku text, size text, old_price integer, new_price integer, change integer, change_ratio double precision,
  moves bigint, last_moved_at timestamptz, name text, brand text, model text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
BEGIN ATOMIC
  SELECT m.sku, m.size, m.old_price, m.new_price, m.new_price - m.old_price,
         m.new_price::float8 / nullif(m.old_price, 0) - 1, m.moves, m.last_moved_at, pr.name, pr.brand, pr.model
  FROM (
    SELECT h.sku, h.size, count(*) AS moves, max(h.observed_at) AS last_moved_at,
           (array_agg(h.old_price ORDER BY h.id))[1] AS old_price, (array_agg(h.new_price ORDER BY h.id DESC))[1] AS new_price
    FROM catalog.price_history h
    WHERE h.observed_at > (SELECT catalog_internal.moment()) - within
      -- Says the same of more: the planner knows what it is before it plans, and by it how few rows there are.
      AND h.observed_at > statement_timestamp() - within
      -- Up to a correction of what the sizes mean, the prices were of other sizes. What they mean being known
      -- for the first time corrects nothing.
      AND NOT EXISTS (
        SELECT FROM catalog.product_history c
        WHERE c.sku = h.sku AND c.field = 'size_map_size_type' AND c.old_value IS NOT NULL AND c.observed_at >= h.observed_at
      )
    GROUP BY h.sku, h.size
  ) m
  LEFT JOIN catalog.products pr ON pr.sku = m.sku
  WHERE m.old_price <> m.new_price
  ORDER BY abs(m.new_price::float8 / nullif(m.old_price, 0) - 1) DESC NULLS FIRST, m.sku, m.size
  LIMIT most;
END;

REVOKE ALL ON FUNCTION catalog.movers(interval, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.movers(interval, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.movers(interval, integer) IS 'What moved within a time (one hour): sizes by the relative change from the price before it to the newest, largest first. Sizes that only appeared or went are not in it, nor moves up to a correction of size_type: sizes meant something else then.';
--> statement-breakpoint
-- Everything that is known of one SKU and decides what its prices are worth, for whoever doubts one of them.
-- Null: it is not known. With the owner's rights, as most of it is nobody's to read as a whole.
CREATE OR REPLACE FUNCTION catalog.explain(sku text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
  SELECT jsonb_build_object(
    'sku', s.sku,
    'at', m.moment,
    'state', s.state,
    'price_source', s.price_source,
    'in_manifest', s.in_manifest,
    'scope', (
      SELECT jsonb_build_object('in_scope', d.outside_due_at IS NULL, 'asked_for_metadata', d.outside_due_at IS NOT NULL AND d.reason = 'scope', 'rules', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('kind', r.kind, 'value', r.name, 'include', r.include)
          ORDER BY r.kind = 'sku' DESC, r.include, r.kind, length(r.name) DESC, r.name), '[]')
        FROM (SELECT) one LEFT JOIN catalog.products pr ON pr.sku = s.sku
        CROSS JOIN LATERAL catalog_internal.scope_rules_of(s.sku, pr.brand, pr.model, pr.category) r
      ))
      FROM catalog_internal.scoping g WHERE g.scoped
    ),
    'product', (
      SELECT jsonb_build_object('name', pr.name, 'brand', pr.brand, 'model', pr.model, 'size_type', pr.size_map_size_type, 'refreshed_at', pr.refreshed_at)
      FROM catalog.products pr WHERE pr.sku = s.sku
    ),
    'answer', jsonb_build_object(
      'asked_at', s.asked_at, 'because', d.asked_because, 'priced_at', s.priced_at, 'first_priced_at', s.first_priced_at,
      'age_seconds', extract(epoch FROM t.price_age)::float8
    ),
    'report', jsonb_build_object(
      'reported_at', s.reported_at, 'removed_at', s.removed_at, 'asked_since', s.reported_at IS NOT NULL AND coalesce(s.asked_at >= s.reported_at, false),
      'again_at', d.again_at, 'missed_moves', coalesce(d.missed_moves, 0)
    ),
    'trust', jsonb_build_object(
      'p_right', t.p_right, 'size_p_right', t.size_p_right, 'confidence', e.confidence, 'actionable', t.actionable, 'doubt', t.doubt,
      'doubted', CASE WHEN d.doubt IS NOT NULL THEN jsonb_build_object('oddity', d.oddity, 'since', d.doubted_at, 'before', d.believed) END,
      'stale', t.stale, 'past_target', t.past_target, 'target_seconds', extract(epoch FROM t.target_age)::float8
    ),
    'belief', jsonb_build_object(
      'cohort', c.cohort,
      'minutes_between_changes', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.beta, 120) + coalesce(l.prior_part, least(1, l.beta / 120)) * (e.live_prior_minutes - 120)) / coalesce(l.alpha, 0.8) END,
      'own_rate', l.sku IS NOT NULL,
      'moved_with_line', CASE WHEN c.cohort IN ('live', 'unlisted') AND l.hazard > 0 THEN 1 - exp(-least(60, l.hazard)) END,
      'hinted_by', (
        SELECT jsonb_agg(jsonb_build_object('source', q.source, 'at', q.hinted_at, 'moved', 1 - exp(-q.hazard)) ORDER BY q.hinted_at, q.source)
        FROM catalog_internal.waiting_hints q WHERE q.sku = s.sku
      ),
      'sizes_that_move', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.sizes_moved, 0) + 20 * e.live_moved_part) / (coalesce(l.sizes_seen, 0) + 20) ELSE e.snapshot_moved_part END,
      'looks', k.looks, 'right_share', k.right_share, 'claimed_share', k.claimed_share
    ),
    'next', jsonb_build_object(
      'look_at', t.next_look_at, 'due_at', CASE WHEN isfinite(d.due_at) THEN d.due_at END, 'reason', d.reason, 'is_due', t.owed, 'lane', t.owed_lane,
      'under_way', d.claim IS NOT NULL, 'held_until', d.held_until, 'deferrals', t.deferrals, 'failures', t.failures,
      'last_error', d.last_error, 'watched', w.weight
    ),
    'promise', (
      SELECT jsonb_build_object('max_age_seconds', extract(epoch FROM m.max_age)::float8, 'feasible', m.feasible, 'kept_share', m.kept_share, 'because', m.because)
      FROM catalog.promises m WHERE m.sku = s.sku
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
  CROSS JOIN catalog_internal.moment() AS m(moment)
  CROSS JOIN LATERAL (
    SELECT catalog_internal.cohort_of(s.price_source, s.in_manifest AND d.missed_moves IS NULL, coalesce(d.live, false), catalog_internal.is_reported(d, m.moment)) AS cohort
  ) c
  LEFT JOIN LATERAL (
    SELECT sum(looks)::bigint AS looks, sum(looks * right_share) / nullif(sum(looks), 0) AS right_share,
           sum(looks * claimed_share) / nullif(sum(looks), 0) AS claimed_share
    FROM catalog.calibration WHERE cohort = c.cohort
  ) k ON true
  WHERE s.sku = explain.sku
$$;

REVOKE ALL ON FUNCTION catalog.explain(text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.explain(text) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.explain(text) IS 'Where each number of a SKU comes from, as JSON: whether it is in scope, and by which rules of catalog.scope (the first decides; null: MIRROR_SCOPE is catalog); the answer, and why it was asked for; the report of the delta, when it is asked once more for it, and how many changes the delta has left out since its last report of one; how likely the prices are right, and what speaks against them; what is believed of its changes; the next refresh; each size with the price before. Null: the SKU is not known.';
--> statement-breakpoint
DROP FUNCTION catalog_internal.trust_terms();
DROP FUNCTION catalog_internal.is_waiting(catalog_internal.due);
DROP FUNCTION catalog_internal.is_reported(catalog_internal.due);
--> statement-breakpoint
-- Whether a table of the feed was emptied, dropped, detached or written anew since the snapshot of the reader: its row
-- in pg_class is the snapshot's, while functions tell of the present. To be asked after the history was read.
CREATE OR REPLACE FUNCTION catalog_internal.history_was_taken() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (
    SELECT FROM pg_class c
    WHERE c.oid IN ('catalog.product_history'::regclass, 'catalog_internal.change_batches'::regclass)
      AND pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode
    UNION ALL
    SELECT FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
    WHERE inhparent = 'catalog.price_history'::regclass
      AND (pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode OR pg_partition_root(c.oid) IS DISTINCT FROM inhparent::regclass)
  )
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_was_taken() FROM PUBLIC;
--> statement-breakpoint
-- The position from which a reader gets everything that is committed from now on. The newest row that this snapshot
-- sees, not the newest position drawn: what is being committed right now comes after it. Where the history holds less
-- than what was dropped, what was dropped is the position: not in a transaction whose snapshot is from before that,
-- which does not see what came last.
CREATE OR REPLACE FUNCTION catalog.changes_position() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest bigint;
  oldest bigint;
BEGIN
  newest := catalog_internal.position_of(greatest(
    (SELECT id FROM catalog.price_history ORDER BY id DESC LIMIT 1),
    (SELECT id FROM catalog.product_history ORDER BY id DESC LIMIT 1),
    (SELECT last_id FROM catalog_internal.change_batches ORDER BY last_id DESC LIMIT 1)));
  -- From the reading on nothing more can be emptied or dropped.
  oldest := catalog.changes_oldest();
  IF newest >= oldest THEN
    RETURN newest;
  END IF;
  IF catalog_internal.history_was_taken() THEN
    RAISE EXCEPTION 'the history of changes was emptied after this transaction began, which does not see what came before that'
      USING ERRCODE = 'CM001', HINT = 'Begin a new transaction.';
  END IF;
  RETURN oldest;
END
$$;

REVOKE ALL ON FUNCTION catalog.changes_position() FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_position() TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_position() IS 'The position to follow changes from now on from. Take it before you read the tables.';
--> statement-breakpoint
-- Says which row of others' tables refers to the partition of price_history whose positions end there; null: none does.
-- What cannot be read may refer to it. By the key of the partition alone, which every foreign key has: the rest only
-- has to be there (MATCH SIMPLE). The caller turns row_security off, so that a policy hides no row, but is an error.
CREATE OR REPLACE FUNCTION catalog_internal.refers_to_history(chunk regclass, ends bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  reference record;
  refers boolean;
BEGIN
  FOR reference IN
    SELECT format('foreign key %I of %s', k.conname, k.conrelid::regclass) AS name, format(
      'SELECT EXISTS (SELECT FROM %s %s r JOIN %s c ON c.id = r.%I WHERE r.%4$I >= $1 AND r.%4$I < $2 AND num_nulls(%5$s) = 0)',
      -- A key of a table that others inherit from is of its own rows.
      CASE t.relkind WHEN 'p' THEN '' ELSE 'ONLY' END, k.conrelid::regclass, chunk, own.id, own.columns) AS query
    FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid, LATERAL (
      SELECT string_agg(format('r.%I', mine.attname), ', ') AS columns, max(mine.attname::text) FILTER (WHERE its.attname = 'id') AS id
      FROM unnest(k.conkey, k.confkey) AS pair(mine, its)
      JOIN pg_attribute mine ON mine.attrelid = k.conrelid AND mine.attnum = pair.mine
      JOIN pg_attribute its ON its.attrelid = k.confrelid AND its.attnum = pair.its
    ) own
    WHERE k.contype = 'f' AND k.conparentid = 0 AND k.confrelid IN ('catalog.price_history'::regclass, chunk)
  LOOP
    BEGIN
      EXECUTE reference.query INTO refers USING ends - 5000000, ends;
    EXCEPTION WHEN insufficient_privilege THEN
      RETURN format('whether %s refers to %s is not known (%s): grant %I USAGE on the schema and SELECT on the table, and BYPASSRLS where it has policies',
        reference.name, chunk, SQLERRM, current_user);
    END;
    IF refers THEN
      RETURN format('a row refers to %s by %s', chunk, reference.name);
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refers_to_history(regclass, bigint) FROM PUBLIC;
--> statement-breakpoint
-- Drops the oldest partition of price_history where all of it is older than so many seconds, never the one
-- that is being written. Its positions are those of the feed's other changes, too, which it may have alone: a
-- first manifest of millions of SKUs moves no price. Of those the newest ones tell, a hundred because a late
-- answer is written with the time at which it was asked for. One a transaction: setval on the last dropped
-- position is not rolled back when the rest is. 'in use' means that somebody is reading the partition: it is
-- dropped another time. 'referred to', by somebody's foreign key or view: it is dropped once nothing refers to
-- it, and a warning says what does. It is detached first, as Postgres drops no table that a foreign key is on,
-- be it an empty one, and detaches one of which no row is referred to, for which it reads all that may refer to it by
-- the rights of the caller, and by policies unless row_security is off. It does so under the lock, so a row that
-- refers to it is looked for before. The lock timeout is short, because nobody else can read while this waits for
-- the lock.
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
--> statement-breakpoint
-- Partition n of price_history holds the positions from 5,000,000 n on. Makes the one that is being written,
-- where it is missing, and the next: for maintenance (`ahead`), which is told why it cannot be made, and for
-- a writer who may come to its end. That one goes on without it: what forbids it, or holds the table, is to
-- cost no answer before the positions are there. Whoever writes more than an answer says how many positions
-- are `needed`. Under the lock, because two sessions may find one missing at
-- once. Each is made as a table of its own and then attached, which locks nobody out; for the next nobody who
-- waits for the lock of the changes waits long. One that somebody has detached is attached again, as what is
-- written has to go somewhere. One that somebody has dropped is made anew: what was in it is told by nobody,
-- so all positions before now are refused. What sellers have put upon price_history (a CHECK, a column that is
-- generated) a new one has, too, or Postgres attaches it to none.
CREATE OR REPLACE FUNCTION catalog_internal.add_history_chunks(ahead boolean DEFAULT false, needed bigint DEFAULT 0) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest bigint;
  chunk bigint;
  called text;
  attached boolean;
  patience text := current_setting('lock_timeout');
BEGIN
  SELECT last_value INTO newest FROM catalog_internal.change_positions;
  -- Two, or one, and all that are needed.
  FOR chunk IN SELECT n FROM generate_series(newest / 5000000, (newest + greatest(needed, CASE WHEN ahead THEN 5000000 ELSE 500000 END)) / 5000000) n LOOP
    called := format('price_history_%s', chunk);
    CONTINUE WHEN pg_partition_root(to_regclass('catalog_internal.' || called)) = 'catalog.price_history'::regclass;
    PERFORM catalog_internal.lock_changes();
    -- Made by another while this one waited: asked of the catalog itself, as a name once not found is remembered.
    SELECT relispartition INTO attached FROM pg_class WHERE relnamespace = 'catalog_internal'::regnamespace AND relname = called;
    CONTINUE WHEN attached;
    BEGIN
      IF chunk > (newest + needed) / 5000000 THEN
        PERFORM set_config('lock_timeout', '100ms', true);
      END IF;
      IF attached IS NULL THEN
        EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED)', called);
      END IF;
      EXECUTE format('ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.%I FOR VALUES FROM (%s) TO (%s)',
        called, chunk * 5000000, (chunk + 1) * 5000000);
      IF attached IS NULL AND chunk * 5000000 <= newest AND EXISTS (SELECT FROM catalog_internal.history_chunks WHERE number = chunk) THEN
        PERFORM setval('catalog_internal.dropped_positions', greatest(drawn.last_value, dropped.last_value))
        FROM catalog_internal.change_positions drawn, catalog_internal.dropped_positions dropped;
        RAISE WARNING 'catalog_internal.% was dropped by hand: who has not read all changes before now has to begin again', called;
      END IF;
      INSERT INTO catalog_internal.history_chunks VALUES (chunk) ON CONFLICT DO NOTHING;
      INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
      ON CONFLICT DO NOTHING;
      PERFORM set_config('lock_timeout', patience, true);
    EXCEPTION WHEN OTHERS THEN
      IF ahead OR chunk <= (newest + needed) / 5000000 THEN
        RAISE;
      END IF;
    END;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_history_chunks(boolean, bigint) FROM PUBLIC;
--> statement-breakpoint
-- Says at once to whoever asks for a promise that the account cannot keep: the statement's own rows count,
-- and those of nobody else's open transaction. It writes nothing and waits for nobody but a migration. In a
-- SERIALIZABLE transaction others' promises are those that the mirror has read: sellers who each read the
-- watchlist and add to it would make each other fail.
-- SECURITY DEFINER, because catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.warn_of_promises() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  apart CONSTANT boolean := current_setting('transaction_isolation') = 'serializable';
  c record;
  n record;
BEGIN
  IF NOT EXISTS (SELECT FROM becomes WHERE max_age IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  SELECT * INTO c FROM catalog_internal.promise_capacity();
  SELECT count(*) AS promises, count(*) FILTER (WHERE NOT f.fits) AS left_out, coalesce(sum(f.demand) FILTER (WHERE f.live), 0) AS live,
         coalesce(sum(f.demand) FILTER (WHERE NOT f.live), 0) AS others
  INTO n
  FROM (
    SELECT array_agg(sku) AS skus, array_agg(max_age) AS ages, array_agg(weight) AS weights FROM (
      SELECT sku, extract(epoch FROM max_age)::double precision AS max_age, weight FROM catalog.watchlist WHERE NOT apart
      UNION ALL
      SELECT sku, extract(epoch FROM max_age)::double precision, weight FROM becomes WHERE apart
      UNION ALL
      SELECT w.sku, w.max_age, w.weight FROM catalog_internal.watched w WHERE apart AND NOT EXISTS (SELECT FROM becomes b WHERE b.sku = w.sku)
    ) p WHERE max_age IS NOT NULL
  ) a
  CROSS JOIN LATERAL catalog_internal.promises_that_fit(a.skus, a.ages, a.weights) f;
  IF n.left_out > 0 THEN
    RAISE WARNING 'these promises need % requests a minute, % can be had for them: % of % are not kept',
      ceil(c.requests * greatest(n.live / c.live, n.others / c.others)), floor(c.requests), n.left_out, n.promises
    USING DETAIL = format('Refreshes a minute: live-priced SKUs need %s of %s, others %s of %s.', ceil(n.live), floor(c.live), ceil(n.others), floor(c.others)),
      HINT = 'Promises of the greatest weight are kept first, and among equal ones those of the greatest max_age; catalog.promises says which. Give a longer max_age, or to fewer SKUs.';
  END IF;
  IF c.hindered IS NOT NULL THEN
    RAISE WARNING 'no promise is kept at present: requests are %', CASE c.hindered WHEN 'calls are failing' THEN 'failing' ELSE c.hindered END;
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.warn_of_promises() FROM PUBLIC;
