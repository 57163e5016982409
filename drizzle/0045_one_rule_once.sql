-- Whether no delta was checked for longer than delta_late_after allows, or the last one at a time to come, which tells nothing of
-- when it was: a clock was set. Null before the first baseline. Health, catalog_state and the doubt delta_late go by this.
-- Writers date by the beginning of their transaction, which may be after that of the reader: hence the present time, and with it
-- VOLATILE, as the planner sees through no STABLE function that calls clock_timestamp().
CREATE OR REPLACE FUNCTION catalog_internal.delta_is_late(s catalog_internal.sync, g catalog_internal.settings) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(s.delta_checked_at, s.manifest_applied_at)
    NOT BETWEEN now() - make_interval(secs => catalog_internal.delta_late_after(g)) AND clock_timestamp() + interval '1 minute';
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.delta_is_late(catalog_internal.sync, catalog_internal.settings) FROM PUBLIC;
--> statement-breakpoint
-- Whether a pause that somebody asked for keeps all requests back: nobody has ended it, and its end is to come
-- (src/pace/pause.ts: holds). A single expression, and VOLATILE, as delta_is_late.
CREATE OR REPLACE FUNCTION catalog_internal.pause_holds(p catalog_internal.pause) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT p.resumed_by IS NULL AND p.until > clock_timestamp();
END;
--> statement-breakpoint
-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.pause_holds(catalog_internal.pause) TO PUBLIC;
--> statement-breakpoint
-- Whether bulk calls wait after failures, by the row of their task: until next_at, which an operator may have made endless
-- (resume_calls). A single expression, and VOLATILE, as delta_is_late.
CREATE OR REPLACE FUNCTION catalog_internal.calls_are_paused(t catalog_internal.tasks) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT t.task = 'reprice' AND t.failures > 0 AND t.next_at > clock_timestamp();
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.calls_are_paused(catalog_internal.tasks) FROM PUBLIC;
--> statement-breakpoint
-- Ends the pause of bulk calls after failures, but one that an operator has made endless. The failures stay counted: what keeps
-- calls from working pauses them again, and for longer. Returns whether there was such a pause.
CREATE OR REPLACE FUNCTION catalog_internal.resume_calls() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE catalog_internal.tasks t SET next_at = clock_timestamp()
  WHERE catalog_internal.calls_are_paused(t) AND t.next_at < 'infinity';
  RETURN FOUND;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.resume_calls() FROM PUBLIC;
--> statement-breakpoint
-- Whether a SKU has been reported to have changed, and was not asked for since; also one that is out of scope, which nobody asks
-- for. False where the ledger does not know it. A single expression, as snapshot_target. catalog.sku_trust has it written out: each
-- function that its planner has to see through is paid for with every SKU that is looked up.
CREATE OR REPLACE FUNCTION catalog_internal.is_reported(d catalog_internal.due) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(coalesce(d.outside_due_at, d.due_at) <= now() AND d.reason = 'changed', false);
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.is_reported(catalog_internal.due) FROM PUBLIC;
--> statement-breakpoint
-- Whether a SKU waits after the partner has deferred it, or for its second answer: until then it does not count as due, though its
-- due time has come. After an error it is due. A single expression, as snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.is_waiting(d catalog_internal.due) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT d.claim IS NULL AND (d.deferrals > 0 OR d.failures = 0 AND d.doubt IS NOT NULL) AND coalesce(d.held_until > now(), false);
END;
--> statement-breakpoint
-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.is_waiting(catalog_internal.due) TO PUBLIC;
--> statement-breakpoint
-- What a SKU waits after, or has waited: deferred by the partner, or an error; null: neither. A single expression, as
-- snapshot_target. catalog.sku_trust has it written out, as is_reported.
CREATE OR REPLACE FUNCTION catalog_internal.put_off_by(d catalog_internal.due) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN d.deferrals > 0 THEN 'deferred' WHEN d.failures > 0 THEN 'error' END;
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.put_off_by(catalog_internal.due) FROM PUBLIC;
--> statement-breakpoint
-- 'none' before the first baseline; 'stale' while the catalog routes do not report changes, or cannot be trusted to; else 'ok'.
-- A token that moved proves that the partner's catalog builder works, until the manifest route is checked again.
-- SECURITY DEFINER, because a view reads its tables as its owner but calls its functions as its reader, who may not
-- read the settings. PL/pgSQL plans its statement once a session, and sku_trust calls it in every query. It only
-- reads, so queries may use parallel workers.
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
         < now() - make_interval(secs => g.catalog_stale_after) THEN 'stale'
    WHEN catalog_internal.delta_is_late(s, g) THEN 'stale'
    ELSE 'ok'
  END;
END
$$;
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
    AND coalesce((SELECT finished_at BETWEEN now() - interval '5 minutes' AND clock_timestamp() + interval '1 minute' FROM catalog_internal.tasks WHERE task = 'maintenance'), false);
  -- A pause that ends by itself is waited for as a back-off is.
  backoff_until := greatest(CASE WHEN p.backoff_until > now() THEN p.backoff_until END, paused_until);
END
$$;
--> statement-breakpoint
-- Why no request leaves now, as a sentence without its full stop; null: requests leave. A daemon is there while the session is that
-- its row names (src/store/setup/instance.ts).
CREATE OR REPLACE FUNCTION catalog_internal.nothing_leaves() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  p catalog_internal.pause;
  c catalog_internal.pace;
  iso CONSTANT text := 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
BEGIN
  IF NOT EXISTS (SELECT FROM catalog_internal.instances i WHERE catalog_internal.session_lives(i.pid, i.backend_start)) THEN
    RETURN 'no daemon is running';
  END IF;
  SELECT * INTO p FROM catalog_internal.pause z WHERE catalog_internal.pause_holds(z);
  IF FOUND THEN
    RETURN format('requests to the partner are paused until %s (by %s)',
      CASE WHEN isfinite(p.until) THEN to_char(p.until, iso) ELSE '`catalog-mirror resume`' END, p.paused_by);
  END IF;
  SELECT * INTO c FROM catalog_internal.pace WHERE backoff_until > clock_timestamp();
  IF FOUND THEN
    RETURN format('the partner rejects requests (%s), and the mirror backs off until %s', c.refusal, to_char(c.backoff_until, iso));
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
-- What promises of a price's age (catalog.watchlist.max_age) may take, a minute: requests, and with these refreshes of SKUs that count as live, and of others.
-- A fifth of everything is left to all other SKUs. As the pacer would allow it at this moment (src/pace/policy.ts: ownMost, ceilingAt; after a back-off with what requests
-- resume at), with what calls have taught. `hindered`: what keeps all requests back at present; null: nothing. SECURITY DEFINER: a seller's INSERT and a view call it.
CREATE OR REPLACE FUNCTION catalog_internal.promise_capacity(
  OUT requests double precision, OUT live double precision, OUT others double precision, OUT incident boolean, OUT hindered text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part CONSTANT double precision := 0.8;
  g catalog_internal.settings;
  p catalog_internal.pace;
  window_part double precision;
  most double precision;
  sent_by_others integer;
  per_call double precision;
  budget double precision;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  window_part := g.rate_window / (g.rate_window + least(0.5, g.rate_window / 20));
  most := greatest(1, floor(g.rate_share * window_part) - 1);
  SELECT sent INTO sent_by_others FROM catalog_internal.others_sent(make_interval(secs => g.rate_window));
  IF sent_by_others > 0 THEN
    most := least(most, greatest(1, g.rate_floor, floor(g.rate_limit * window_part) - 1 - sent_by_others - ceil(g.rate_limit * 0.05)));
  END IF;
  most := least(most, CASE WHEN p.backoff_until IS NOT NULL THEN coalesce(p.resume_at, 20) ELSE catalog_internal.present_ceiling(p) * g.rate_window / 60 END);
  requests := part * most * 60 / g.rate_window;
  per_call := least(g.bulk_max_skus, (SELECT size FROM catalog_internal.call_size));
  SELECT least(per_call, greatest(1, floor(coalesce(live_budget, g.bulk_live_budget)))) INTO budget FROM catalog_internal.sync;
  live := least(requests * budget, part * (SELECT per_minute FROM catalog_internal.live_ceiling));
  others := requests * greatest(1, per_call - budget);
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  hindered := CASE
    WHEN EXISTS (SELECT FROM catalog_internal.pause z WHERE catalog_internal.pause_holds(z)) THEN 'paused'
    WHEN p.backoff_until IS NOT NULL THEN 'backing off after a refusal'
    WHEN EXISTS (SELECT FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t)) THEN 'calls are failing'
  END;
END
$$;
--> statement-breakpoint
-- Writes down that a seller asks for SKUs: nothing that the mirror needs is locked, however long the caller's transaction stays open. Those that
-- are known and in scope come back, each with the generation that its mark has before: an answer to a later one was asked for after this.
-- A SKU that somebody has asked for already costs nothing, nor one that the next call has anyway, and is not written down twice unless somebody
-- waits for an answer. Any other costs its part of a call; while calls fail, one call at least, as it has them tried again.
CREATE OR REPLACE FUNCTION catalog_internal.ask_refresh(skus text[], waits boolean, OUT known text[], OUT generations integer[], OUT missing text[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  most CONSTANT integer := 1000;
  wanted text[] := ARRAY(SELECT DISTINCT w.sku FROM unnest(ask_refresh.skus) AS w(sku) WHERE w.sku IS NOT NULL);
  asked text[];
  calls float8;
  wait float8;
BEGIN
  IF cardinality(wanted) > most THEN
    PERFORM nextval('catalog_internal.refreshes_refused');
    RAISE EXCEPTION '% SKUs are too many for one call', cardinality(wanted)
      USING ERRCODE = 'CM004', HINT = format('Ask for %s at a time.', most);
  END IF;
  SELECT array_agg(k.sku), array_agg(k.generation),
    array_agg(k.sku) FILTER (WHERE NOT k.requested AND (ask_refresh.waits OR NOT k.next OR k.rank < 'Infinity')),
    coalesce(sum(k.part) FILTER (WHERE NOT k.requested AND NOT k.next), 0)
  INTO known, generations, asked, calls
  FROM (
    SELECT d.sku, d.generation, d.rank,
      EXISTS (SELECT FROM catalog_internal.refresh_requests r WHERE r.sku = d.sku) AS requested,
      d.lane = 1 AND d.due_at <= clock_timestamp() AND d.held_until IS NULL AND d.largest_call IS NULL AS next,
      1 / greatest(1, CASE WHEN d.largest_call IS NOT NULL THEN d.largest_call WHEN d.live OR l.incident_since IS NOT NULL
        THEN coalesce(y.live_budget, g.bulk_live_budget) ELSE g.bulk_max_skus END)::float8 AS part
    FROM unnest(wanted) AS w(sku) JOIN catalog.skus s ON s.sku = w.sku JOIN catalog_internal.due d ON d.sku = w.sku
      CROSS JOIN catalog_internal.settings g CROSS JOIN catalog_internal.sync y CROSS JOIN catalog_internal.live_plan l
    WHERE d.outside_due_at IS NULL
  ) k;
  known := coalesce(known, '{}');
  missing := ARRAY(SELECT w.sku FROM unnest(wanted) AS w(sku) WHERE w.sku <> ALL (known) ORDER BY w.sku);
  IF calls > 0 AND EXISTS (SELECT FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t)) THEN
    calls := greatest(calls, 1);
  END IF;
  wait := catalog_internal.pay_refreshes(calls, cardinality(known));
  IF wait = 'Infinity' THEN
    PERFORM nextval('catalog_internal.refreshes_refused');
    RAISE EXCEPTION 'these % SKUs take more requests than refreshes from SQL have in a minute', cardinality(known)
      USING ERRCODE = 'CM004', HINT = 'Ask for fewer at a time: about five live ones go into a request.';
  ELSIF wait > 0 THEN
    PERFORM nextval('catalog_internal.refreshes_refused');
    RAISE EXCEPTION 'refreshes from SQL have used up their quarter of the requests'
      USING ERRCODE = 'CM004', HINT = format('Try again in %s s.', ceil(wait));
  END IF;
  INSERT INTO catalog_internal.refresh_requests (sku) SELECT unnest(asked);
END
$$;
--> statement-breakpoint
-- Marks SKUs due now, ahead of everything else, and nothing makes them wait any longer: no deferral, no error, no pause of calls after failures
-- (but one that an operator has made endless). What is asked for at the moment stays whose it is.
CREATE OR REPLACE FUNCTION catalog_internal.refresh_skus(skus text[], OUT marked bigint, OUT released bigint, OUT resumed boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  SELECT count(*) INTO released FROM catalog_internal.due d
  WHERE d.sku = ANY (refresh_skus.skus) AND d.claim IS NULL AND d.held_until > clock_timestamp();
  marked := catalog_internal.mark_due(refresh_skus.skus, 'refresh');
  UPDATE catalog_internal.due d SET rank = 'Infinity', held_until = CASE WHEN d.claim IS NOT NULL THEN d.held_until END
  WHERE d.sku = ANY (refresh_skus.skus);
  resumed := catalog_internal.resume_calls();
END
$$;
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
    coalesce(why, 'bulk calls fail, and the next one is made ' || CASE WHEN isfinite(failing) THEN 'at ' || to_char(failing, iso) ELSE 'when an operator says so' END,
      format('%s asked for at the moment, %s put off by the partner, %s waiting for their turn',
        count(*) FILTER (WHERE n.state = 'asked for'), count(*) FILTER (WHERE n.held_until IS NOT NULL), count(*) FILTER (WHERE n.state LIKE '%due%')))
  INTO named, why
  FROM (
    SELECT t.place, d.sku, CASE WHEN d.claim IS NULL THEN d.held_until END AS held_until,
      CASE WHEN d.claim IS NOT NULL THEN 'asked for'
        WHEN d.outside_due_at IS NOT NULL THEN 'out of scope'
        WHEN d.held_until IS NULL THEN CASE WHEN d.due_at <= clock_timestamp() THEN 'due' ELSE 'not due yet' END
        ELSE format('%s until %s', CASE WHEN d.failures > 0 THEN 'failed' ELSE 'deferred' END, to_char(d.held_until, iso)) END AS state
    FROM jsonb_array_elements_text(ticket -> 'skus') WITH ORDINALITY AS t(sku, place) JOIN catalog_internal.due d ON d.sku = t.sku
  ) n;
  RAISE EXCEPTION '% of % SKUs were answered within % s: %', (ticket ->> 'asked')::integer - missing, ticket ->> 'asked',
    round((ticket ->> 'waited')::numeric, 1), why
    USING ERRCODE = 'CM003', DETAIL = 'Not answered: ' || named || CASE WHEN missing > 10 THEN ', …' ELSE '' END,
    HINT = 'They stay due; catalog.sku_trust tells when each is expected to be refreshed.';
END
$$;
--> statement-breakpoint
-- Everything that is known of one SKU and decides what its prices are worth, for whoever doubts one of them. Null: it is not known.
-- With the owner's rights, as most of it is nobody's to read as a whole.
CREATE OR REPLACE FUNCTION catalog.explain(sku text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'sku', s.sku,
    'at', now(),
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
    SELECT catalog_internal.cohort_of(s.price_source, s.in_manifest, coalesce(d.live, false), catalog_internal.is_reported(d)) AS cohort
  ) c
  LEFT JOIN LATERAL (
    SELECT sum(looks)::bigint AS looks, sum(looks * right_share) / nullif(sum(looks), 0) AS right_share,
           sum(looks * claimed_share) / nullif(sum(looks), 0) AS claimed_share
    FROM catalog.calibration WHERE cohort = c.cohort
  ) k ON true
  WHERE s.sku = explain.sku
$$;
--> statement-breakpoint
-- One row. The pacer makes its own row when it first starts, and the pause the first time that somebody asks for one: hence the LEFT JOINs.
CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus - o.live_skus AS live_skus, k.pending_skus - o.pending_skus AS pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p) AS requests_per_minute,
       CASE WHEN p.backoff_until > now() THEN p.backoff_until END AS backing_off_until,
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
  SELECT count(*) FILTER (WHERE due_at <= now() AND NOT catalog_internal.is_waiting(l)) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0 AND outside_due_at IS NULL) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= now()) AS oldest_due_at
  FROM catalog_internal.due l
) d
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE s.price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE s.state = 'pending') AS pending_skus
  FROM catalog_internal.due l JOIN catalog.skus s ON s.sku = l.sku
  WHERE (SELECT scoped FROM catalog_internal.scoping) AND l.outside_due_at IS NOT NULL
) o;
