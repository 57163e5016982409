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
         < statement_timestamp() - make_interval(secs => g.catalog_stale_after) THEN 'stale'
    WHEN catalog_internal.delta_is_late(s, g) THEN 'stale'
    ELSE 'ok'
  END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
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
    NOT BETWEEN statement_timestamp() - make_interval(secs => catalog_internal.delta_late_after(g)) AND clock_timestamp() + interval '1 minute';
END;
--> statement-breakpoint
-- Whether a SKU has been reported to have changed, and was not asked for since; also one that is out of
-- scope, which nobody asks for. False where the ledger does not know it. A single expression, as
-- snapshot_target. catalog.sku_trust has it written out: each function that its planner has to see through is
-- paid for with every SKU that is looked up.
CREATE OR REPLACE FUNCTION catalog_internal.is_reported(d catalog_internal.due) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(coalesce(d.outside_due_at, d.due_at) <= statement_timestamp() AND d.reason = 'changed', false);
END;
--> statement-breakpoint
-- Whether a SKU waits after the partner has deferred it, or for its second answer: until then it does not
-- count as due, though its due time has come. After an error it is due. A single expression, as
-- snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.is_waiting(d catalog_internal.due) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT d.claim IS NULL AND (d.deferrals > 0 OR d.failures = 0 AND (d.doubt IS NOT NULL OR d.reason = 'doubted')) AND coalesce(d.held_until > statement_timestamp(), false);
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
--> statement-breakpoint
-- What a ring of hours has counted in the last day: its first hour is the one that began at `hour`, as it was
-- written last.
CREATE OR REPLACE FUNCTION catalog_internal.last_day(ring integer[], hour timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(sum(n), 0)::bigint FROM unnest(ring) WITH ORDINALITY AS r(n, place)
  WHERE place <= 24 - floor(extract(epoch FROM statement_timestamp() - hour) / 3600);
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
--> statement-breakpoint
-- In how many answers of the last three days a price of the SKU had moved, and how many minutes that covers (since
-- its first price, three days at most): what its history says of its rate of change when it becomes live. The
-- condition on id leaves older partitions unopened.
CREATE OR REPLACE FUNCTION catalog_internal.past_moves(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT count(DISTINCT h.observed_at)::integer,
         CASE WHEN first_priced_at IS NULL THEN 0
           ELSE extract(epoch FROM least(statement_timestamp() - first_priced_at, interval '3 days')) / 60
         END
  FROM catalog.price_history h
  WHERE h.sku = of_sku AND h.observed_at > statement_timestamp() - interval '3 days'
    AND h.id > catalog_internal.position_before(statement_timestamp() - interval '3 days');
END;
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
      (extract(epoch FROM statement_timestamp() - coalesce(s.delta_checked_at, s.manifest_applied_at)) - g.delta_interval) / 60,
      CASE WHEN s.delta_doubt = 'distrusted' THEN (extract(epoch FROM statement_timestamp() - CASE WHEN s.seen_snapshot_id = s.snapshot_id
        THEN greatest(s.token_at, s.catalog_checked_at) ELSE s.token_at END) - g.delta_interval) / 60 END,
      extract(epoch FROM statement_timestamp() - l.incident_since) / 60
    )
  END;
  held.confidence := g.actionable_confidence;
  held.longest_wait := make_interval(secs => g.live_interval + coalesce(l.max_interval_minutes, 0) * 60);
  RETURN held;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
--> statement-breakpoint
-- How a row of the ledger is to stand by scope_of: `in`; `out`: not asked for; `asked`: asked for once,
-- because a rule needs its metadata. A SKU that was answered without a record is asked for again only where
-- it was reported since. `kept`: when it was, or would be, due.
CREATE OR REPLACE FUNCTION catalog_internal.scope_standing(place text, state text, reason text, kept timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN place <> 'unknown' THEN place
    WHEN state = 'pending' OR reason = 'scope' OR reason IN ('new', 'changed') AND kept <= statement_timestamp() THEN 'asked'
    ELSE 'out'
  END;
END;
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
  SELECT counts -> 'due' INTO backlog FROM catalog_internal.catalog_counts WHERE counted_at > statement_timestamp() - interval '5 minutes';
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
    AND coalesce((SELECT finished_at BETWEEN statement_timestamp() - interval '5 minutes' AND clock_timestamp() + interval '1 minute' FROM catalog_internal.tasks WHERE task = 'maintenance'), false);
  -- A pause that ends by itself is waited for as a back-off is.
  backoff_until := greatest(CASE WHEN p.backoff_until > statement_timestamp() THEN p.backoff_until END, paused_until);
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
--> statement-breakpoint
-- How far each SKU's prices can be trusted, for every other reader of it. `stale` is what current_prices shows;
-- `fresh` is what the metric fresh_skus counts; `doubt` also covers what these two know nothing of: the catalog as a
-- whole, and what the sizes mean.
CREATE OR REPLACE VIEW catalog.sku_trust AS
SELECT s.sku, s.state, s.price_source, s.in_manifest, s.priced_at,
       CASE WHEN s.state = 'priced' THEN greatest(statement_timestamp() - s.priced_at, interval '0') END AS price_age,
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
            WHEN NOT k.owed THEN greatest(least(d.due_at, CASE WHEN d.promised_at > statement_timestamp() THEN d.promised_at WHEN d.promised_at <= statement_timestamp() THEN statement_timestamp() END), d.held_until, t.backoff_until)
            WHEN d.held_until > statement_timestamp() THEN greatest(CASE WHEN d.claim IS NULL THEN d.held_until ELSE statement_timestamp() END, t.backoff_until)
            ELSE greatest(statement_timestamp(), t.backoff_until)
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
CROSS JOIN catalog_internal.trust_terms() t
CROSS JOIN catalog_internal.price_beliefs() e
CROSS JOIN catalog_internal.believable_until() AS u(believable_until)
CROSS JOIN LATERAL (
  SELECT coalesce(d.due_at <= statement_timestamp(), false) AS owed,
         -- What is out of scope is asked for no more, and its prices are no fresher for that.
         -- Nothing says that it has moved where it is asked for its metadata, or to see an answer again.
         coalesce(coalesce(d.outside_due_at, d.due_at) <= statement_timestamp() AND d.reason NOT IN ('metadata', 'again'), false) AS reprice_due,
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
  SELECT s.state = 'priced' AND coalesce(s.priced_at, '-infinity') < statement_timestamp() - k.target AS past_target,
         k.reprice_due OR (k.refreshed_as_live AND coalesce(s.priced_at, '-infinity') < statement_timestamp() - t.live_target) AS stale
) b
CROSS JOIN LATERAL (
  SELECT CASE
           WHEN d.outside_due_at IS NOT NULL THEN 'out_of_scope'
           WHEN s.state <> 'priced' THEN s.state
           WHEN s.priced_at > u.believable_until OR k.owed AND d.reason = 'clock' THEN 'clock'
           WHEN d.doubt IS NOT NULL THEN d.doubt
           WHEN k.reprice_due AND NOT k.in_turn THEN 'owed'
           -- Within the plan, a live price is judged by its probability, and not by its age.
           WHEN CASE WHEN k.in_turn THEN coalesce(s.priced_at, '-infinity') < statement_timestamp() - e.longest_wait
                     ELSE b.past_target OR b.stale
                END THEN 'past_target'
           WHEN k.owed AND d.reason = 'metadata' THEN 'size_type'
           WHEN t.incident AND s.priced_at < statement_timestamp() - t.live_target THEN 'incident'
           -- While nothing reports its moves, it is as good as a live one: by age.
           WHEN s.price_source IS DISTINCT FROM 'live'
                AND (t.catalog_doubt = 'no_baseline' OR s.priced_at < statement_timestamp() - t.live_target) THEN t.catalog_doubt
         END AS doubt
) c
CROSS JOIN LATERAL (
  SELECT s.state = 'priced' AND s.priced_at <= u.believable_until AS has_age,
         greatest(0, date_part('epoch', statement_timestamp() - s.priced_at) / 60) AS minutes,
         s.price_source IS NOT DISTINCT FROM 'live' OR NOT s.in_manifest OR coalesce(d.live OR d.missed_moves > 0, false) AS by_rate,
         -- Null while its answer to a report, which had nothing new, is to be seen again (p_right).
         CASE WHEN coalesce(d.outside_due_at, d.due_at) <= statement_timestamp() AND d.reason = 'changed' THEN true WHEN d.again_at IS NULL THEN false END AS reported
) h
CROSS JOIN LATERAL (
  SELECT catalog_internal.p_right(h.by_rate, h.reported, false, h.minutes, l, e) AS p_right,
         catalog_internal.p_right(h.by_rate, h.reported, true, h.minutes, l, e) AS size_p_right
) r;
--> statement-breakpoint
-- One row. The pacer makes its own row when it first starts, and the pause the first time that somebody asks
-- for one: hence the LEFT JOINs.
CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus - o.live_skus AS live_skus, k.pending_skus - o.pending_skus AS pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p) AS requests_per_minute,
       CASE WHEN p.backoff_until > statement_timestamp() THEN p.backoff_until END AS backing_off_until,
       catalog_internal.catalog_state(s) AS catalog_state,
       l.incident_since,
       p.refusal, p.refused_since, coalesce(p.episodes, 0) AS refusals,
       z.since AS paused_since, z.until AS paused_until,
       k.skus - o.skus AS skus_in_scope
FROM catalog_internal.sync s
CROSS JOIN catalog_internal.live_plan l
LEFT JOIN catalog_internal.pace p ON true
LEFT JOIN catalog_internal.pause z ON catalog_internal.pause_holds(z)
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= statement_timestamp() AND NOT catalog_internal.is_waiting(l)) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0 AND outside_due_at IS NULL) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= statement_timestamp() AND NOT catalog_internal.is_waiting(l)) AS oldest_due_at
  FROM catalog_internal.due l
) d
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE s.price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE s.state = 'pending') AS pending_skus
  FROM catalog_internal.due l JOIN catalog.skus s ON s.sku = l.sku
  WHERE (SELECT scoped FROM catalog_internal.scoping) AND l.outside_due_at IS NOT NULL
) o;
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
LEFT JOIN catalog_internal.watched w ON w.sku = l.sku
LEFT JOIN catalog.skus s ON s.sku = l.sku
LEFT JOIN catalog_internal.due d ON d.sku = l.sku
LEFT JOIN catalog_internal.promise_cases p ON p.sku = l.sku
CROSS JOIN LATERAL (SELECT coalesce(w.max_age = extract(epoch FROM l.max_age)::double precision, false) AND d.sku IS NOT NULL AS is_read) k
CROSS JOIN LATERAL (
  SELECT CASE WHEN k.is_read AND s.state = 'priced'
    THEN floor(extract(epoch FROM statement_timestamp() - greatest(s.priced_at, w.promised_since)) / w.max_age) END AS cases
) o
WHERE l.max_age IS NOT NULL;
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
WHERE c.hour > statement_timestamp() - interval '7 days' AND c.hour <= statement_timestamp()
GROUP BY c.cohort, c.bin;
--> statement-breakpoint
-- Everything that is known of one SKU and decides what its prices are worth, for whoever doubts one of them.
-- Null: it is not known. With the owner's rights, as most of it is nobody's to read as a whole.
CREATE OR REPLACE FUNCTION catalog.explain(sku text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'sku', s.sku,
    'at', statement_timestamp(),
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
      'under_way', d.claim IS NOT NULL, 'held_until', d.held_until, 'deferrals', t.deferrals, 'failures', t.failures, 'watched', w.weight
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
  CROSS JOIN LATERAL (
    SELECT catalog_internal.cohort_of(s.price_source, s.in_manifest AND d.missed_moves IS NULL, coalesce(d.live, false), catalog_internal.is_reported(d)) AS cohort
  ) c
  LEFT JOIN LATERAL (
    SELECT sum(looks)::bigint AS looks, sum(looks * right_share) / nullif(sum(looks), 0) AS right_share,
           sum(looks * claimed_share) / nullif(sum(looks), 0) AS claimed_share
    FROM catalog.calibration WHERE cohort = c.cohort
  ) k ON true
  WHERE s.sku = explain.sku
$$;
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
    WHERE h.observed_at > statement_timestamp() - within
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
--> statement-breakpoint
-- The last step of catalog.refresh_now: fails where not all SKUs are answered, and says why.
CREATE OR REPLACE FUNCTION catalog.refresh_end(ticket jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  iso CONSTANT text := 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
  missing integer := coalesce(jsonb_array_length(ticket -> 'skus'), 0);
  why text := catalog_internal.nothing_leaves();
  failing timestamptz;
  named text;
BEGIN
  IF missing = 0 THEN
    RETURN;
  END IF;
  SELECT t.next_at INTO failing FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t);
  SELECT string_agg(format('%s (%s)', n.sku, n.state), ', ' ORDER BY n.place) FILTER (WHERE n.place <= 10),
    coalesce(why, 'bulk calls fail, and the next one is made '
      || CASE WHEN isfinite(failing) THEN 'at ' || to_char(failing, iso) WHEN NOT isfinite(failing) THEN 'when an operator says so' END,
      format('%s asked for at the moment, %s put off by the partner, %s waiting for their turn',
        count(*) FILTER (WHERE n.state = 'asked for'), count(*) FILTER (WHERE n.held_until IS NOT NULL), count(*) FILTER (WHERE n.state = 'due')))
  INTO named, why
  FROM (
    SELECT t.place, d.sku, CASE WHEN d.claim IS NULL THEN d.held_until END AS held_until,
      CASE WHEN d.claim IS NOT NULL THEN 'asked for'
        WHEN d.outside_due_at IS NOT NULL THEN 'out of scope'
        -- Also where the daemon has not read yet that it was asked for.
        WHEN d.held_until IS NULL THEN 'due'
        ELSE format('%s until %s', CASE WHEN d.failures > 0 THEN 'failed' ELSE 'deferred' END, to_char(d.held_until, iso)) END AS state
    FROM jsonb_array_elements_text(ticket -> 'skus') WITH ORDINALITY AS t(sku, place) JOIN catalog_internal.due d ON d.sku = t.sku
  ) n;
  RAISE EXCEPTION '% of % SKUs were answered within % s: %', (ticket ->> 'asked')::integer - missing, ticket ->> 'asked',
    round((ticket ->> 'waited')::numeric, 1), why
    USING ERRCODE = 'CM003', DETAIL = 'Not answered: ' || named || CASE WHEN missing > 10 THEN ', …' ELSE '' END,
    HINT = 'They stay due; catalog.sku_trust tells when each is expected to be refreshed.';
END
$$;
