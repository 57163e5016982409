-- All that catalog.sku_trust needs beside a SKU's own rows, as one row: the terms of trust at a moment, the beliefs, and
-- up to when a time can be believed. One function and not three, because each relation of a view counts where a seller
-- joins it: beyond eight in a statement (join_collapse_limit) Postgres plans the view by itself, and reads the whole
-- mirror for a few rows of the seller's. Columns and no composite value, so that a scan reads each of them directly.
-- SECURITY DEFINER: the view calls it as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.trust_now(
  INOUT moment timestamptz, OUT live_target interval, OUT snapshot_target interval, OUT incident boolean, OUT catalog_doubt text,
  OUT at_work boolean, OUT backoff_until timestamptz, OUT believable_until timestamptz,
  OUT live_moved_part float8, OUT snapshot_moved_part float8, OUT reported_moves float8, OUT waiting_moves float8,
  OUT missed_rate float8, OUT move_rate float8, OUT live_prior_minutes float8, OUT silent_minutes float8,
  OUT confidence float8, OUT longest_wait interval, OUT late_moves float8
)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record := catalog_internal.trust_terms(moment);
  e catalog_internal.held_beliefs := catalog_internal.price_beliefs();
BEGIN
  live_target := t.live_target;
  snapshot_target := t.snapshot_target;
  incident := t.incident;
  catalog_doubt := t.catalog_doubt;
  at_work := t.at_work;
  backoff_until := t.backoff_until;
  believable_until := catalog_internal.believable_until();
  live_moved_part := e.live_moved_part;
  snapshot_moved_part := e.snapshot_moved_part;
  reported_moves := e.reported_moves;
  waiting_moves := e.waiting_moves;
  missed_rate := e.missed_rate;
  move_rate := e.move_rate;
  live_prior_minutes := e.live_prior_minutes;
  silent_minutes := e.silent_minutes;
  confidence := e.confidence;
  longest_wait := e.longest_wait;
  late_moves := e.late_moves;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.trust_now(timestamptz) TO PUBLIC;
--> statement-breakpoint
-- How far each SKU's prices can be trusted, for every other reader of it. `stale` is what current_prices shows;
-- `fresh` is what the metric fresh_skus counts; `doubt` also covers what these two know nothing of: the catalog as a
-- whole, and what the sizes mean. Of four relations, as each takes one from what sellers may join (trust_now).
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
--> statement-breakpoint
-- Statements that give catalog_reader and catalog_watcher what they are to have and lack: what a dump gave to
-- roles that were not there when it was loaded is gone, and with it that nobody else may call the functions:
-- both are one command. Of a role that is not there nothing is said. And what views call as their reader everybody
-- is to have, whatever is by default given to nobody in this cluster. Of what others own in the schema nothing is said:
-- only they may give it.
CREATE OR REPLACE FUNCTION catalog_internal.missing_rights() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH roles AS (
    SELECT rolname::text AS role FROM pg_roles WHERE rolname IN ('catalog_reader', 'catalog_watcher')
  ), relations AS (
    SELECT oid, relname FROM pg_class WHERE relnamespace = 'catalog'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
      AND pg_has_role(relowner, 'USAGE')
  ), functions AS (
    SELECT oid, coalesce(proacl, acldefault('f', proowner)) AS acl, CASE WHEN proname IN ('take_request', 'hint') OR proname LIKE 'refresh%' THEN 'catalog_watcher' ELSE 'catalog_reader' END AS role
    FROM pg_proc WHERE pronamespace = 'catalog'::regnamespace AND pg_has_role(proowner, 'USAGE')
  )
  SELECT format('GRANT USAGE ON SCHEMA catalog TO %I', role) FROM roles WHERE NOT has_schema_privilege(role, 'catalog', 'USAGE')
  UNION ALL
  SELECT format('GRANT SELECT ON %s TO %I', oid::regclass, role) FROM roles, relations
  WHERE (role = 'catalog_reader' OR relname = 'promises') AND NOT has_table_privilege(role, oid, 'SELECT')
  UNION ALL
  SELECT format('GRANT %s ON %s TO %I', privilege, oid::regclass, role)
  FROM roles, relations, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
  WHERE role = 'catalog_watcher' AND relname IN ('watchlist', 'scope') AND NOT has_table_privilege(role, oid, privilege)
  UNION ALL
  SELECT format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', oid::regprocedure) FROM functions
  WHERE EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = 0)
  UNION ALL
  SELECT format('GRANT EXECUTE ON ROUTINE %s TO %I', oid::regprocedure, role) FROM roles JOIN functions USING (role)
  WHERE NOT EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = to_regrole(role))
  UNION ALL
  SELECT format('GRANT EXECUTE ON ROUTINE %s TO PUBLIC', oid::regprocedure) FROM pg_proc
  WHERE pronamespace = 'catalog_internal'::regnamespace AND proname IN ('believable_until', 'catalog_state', 'cohort_of', 'is_waiting', 'lane_names',
      'last_day', 'moment', 'p_right', 'pause_holds', 'present_ceiling', 'price_beliefs', 'promise_capacity', 'seconds_ahead', 'trust_now', 'trust_terms')
    AND NOT EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)
  UNION ALL
  SELECT format('ALTER DEFAULT PRIVILEGES IN SCHEMA catalog GRANT SELECT ON TABLES TO %I', role) FROM roles
  WHERE role = 'catalog_reader' AND NOT EXISTS (
    SELECT FROM pg_default_acl, aclexplode(defaclacl)
    WHERE defaclnamespace = 'catalog'::regnamespace AND defaclobjtype = 'r' AND grantee = to_regrole(role) AND privilege_type = 'SELECT'
  )
$$;

REVOKE ALL ON FUNCTION catalog_internal.missing_rights() FROM PUBLIC;
