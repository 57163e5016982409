-- What sellers call goes by its own number of digits, and reads its literals in one way, whatever their sessions have set.
CREATE OR REPLACE FUNCTION catalog.refresh_wait(INOUT ticket jsonb, OUT waits boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
DECLARE
  waited float8 := (ticket ->> 'waited')::float8;
  remaining float8 := (ticket ->> 'timeout')::float8 - waited;
  step float8 := greatest(0, least(remaining, CASE WHEN waited < 5 THEN 0.05 ELSE 0.25 END));
  past float8;
  skus jsonb;
  after jsonb;
  hopeless boolean;
BEGIN
  IF ticket IS NULL THEN
    waits := false;
    RETURN;
  END IF;
  PERFORM pg_sleep(step);
  -- A clock that is set takes or gives a moment only.
  past := extract(epoch FROM clock_timestamp()) - (ticket ->> 'at')::float8;
  waited := waited + CASE WHEN past BETWEEN 0 AND 5 THEN past ELSE step END;
  remaining := (ticket ->> 'timeout')::float8 - waited;
  SELECT coalesce(jsonb_agg(d.sku), '[]'), coalesce(jsonb_agg(w.after), '[]'), coalesce(bool_and(
    d.claim IS NULL AND coalesce(d.held_until > clock_timestamp() + make_interval(secs => remaining), false)
    AND NOT EXISTS (SELECT FROM catalog_internal.refresh_requests r WHERE r.sku = d.sku)), true)
  INTO skus, after, hopeless
  FROM ROWS FROM (jsonb_array_elements_text(ticket -> 'skus'), jsonb_array_elements_text(ticket -> 'after') ) AS t(sku, number)
    CROSS JOIN LATERAL (SELECT t.number::integer AS after) w
    JOIN catalog_internal.due d ON d.sku = t.sku
  WHERE d.asked_generation IS NULL OR d.asked_generation <= w.after;
  waits := NOT hopeless AND remaining > 0;
  ticket := ticket || jsonb_build_object('skus', skus, 'after', after, 'waited', waited, 'at', extract(epoch FROM clock_timestamp()));
  IF NOT waits THEN
    UPDATE catalog_internal.refresh_places p SET pid = NULL, until = NULL WHERE p.pid = pg_backend_pid();
  ELSIF waited - (ticket ->> 'renewed')::float8 > 3 THEN
    UPDATE catalog_internal.refresh_places p SET until = clock_timestamp() + interval '10 seconds' WHERE p.pid = pg_backend_pid();
    ticket := ticket || jsonb_build_object('renewed', waited);
  END IF;
END
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION catalog.refresh_begin(skus text[], timeout interval, refused text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
DECLARE
  longest CONSTANT integer := 600;
  seconds float8 := extract(epoch FROM refresh_begin.timeout);
  asked record;
  why text;
BEGIN
  BEGIN
    COMMIT;
  EXCEPTION WHEN invalid_transaction_termination THEN
    IF SQLERRM = refused THEN
      RAISE EXCEPTION 'catalog.refresh_now cannot wait inside of a transaction or a function' USING ERRCODE = 'active_sql_transaction',
        HINT = 'Send CALL as a statement of its own, with autocommit. Inside of a transaction use SELECT catalog.refresh(…), which does not wait.';
    END IF;
  END;
  IF seconds IS NULL OR seconds NOT BETWEEN 0 AND longest THEN
    RAISE EXCEPTION 'timeout: expected an interval from 0 to 10 minutes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- For as long as it is renewed (refresh_wait); later than that it cannot be, unless the clock was ahead.
  UPDATE catalog_internal.refresh_places p SET pid = pg_backend_pid(), until = clock_timestamp() + interval '10 seconds'
  WHERE p.place = (
    SELECT f.place FROM catalog_internal.refresh_places f
    WHERE f.pid IS NULL OR f.pid = pg_backend_pid() OR f.until NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'
    ORDER BY f.pid IS DISTINCT FROM pg_backend_pid() LIMIT 1 FOR UPDATE SKIP LOCKED
  );
  IF NOT FOUND THEN
    PERFORM nextval('catalog_internal.refreshes_refused');
    RAISE EXCEPTION 'too many sessions wait in catalog.refresh_now' USING ERRCODE = 'CM004',
      HINT = 'Try again in some seconds, or use SELECT catalog.refresh(…), which does not wait.';
  END IF;
  SELECT * INTO asked FROM catalog_internal.ask_refresh(refresh_begin.skus, true);
  IF cardinality(asked.missing) > 0 THEN
    RAISE WARNING '% of the SKUs are not in the catalog, or out of scope: %', cardinality(asked.missing),
      array_to_string(asked.missing[1:5], ', ') || CASE WHEN cardinality(asked.missing) > 5 THEN ', …' ELSE '' END;
  END IF;
  IF cardinality(asked.known) = 0 THEN
    UPDATE catalog_internal.refresh_places p SET pid = NULL, until = NULL WHERE p.pid = pg_backend_pid();
    RETURN NULL;
  END IF;
  why := catalog_internal.nothing_leaves();
  IF why IS NOT NULL THEN
    RAISE WARNING 'nothing is refreshed now: %', why USING HINT = 'The SKUs stay due.';
  END IF;
  RETURN jsonb_build_object('skus', asked.known, 'after', asked.generations, 'asked', cardinality(asked.known), 'timeout', seconds,
    'waited', 0, 'renewed', 0, 'at', extract(epoch FROM clock_timestamp()));
END
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION catalog.explain(sku text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
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
CREATE OR REPLACE FUNCTION catalog.hint(sku text, source text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  named text := btrim(hint.source, E' \t\r\n');
BEGIN
  -- Names of the mirror's own sources are not a seller's to use.
  IF named IS NULL OR length(named) NOT BETWEEN 1 AND 60 OR named ~ '^(manifest|delta)[.]' OR NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = hint.sku) THEN
    RETURN false;
  END IF;
  BEGIN
    LOCK TABLE catalog_internal.hints IN ROW EXCLUSIVE MODE NOWAIT;
  EXCEPTION WHEN lock_not_available THEN
    RETURN false;
  END;
  IF EXISTS (SELECT FROM catalog_internal.hints h WHERE h.sku = hint.sku AND h.source = named) THEN
    RETURN true;
  END IF;
  -- As many as their ids are apart, at most: to count them would take longer with each.
  IF (SELECT id FROM catalog_internal.hints ORDER BY id DESC LIMIT 1) - (SELECT id FROM catalog_internal.hints ORDER BY id LIMIT 1) >= 100000 THEN
    RETURN false;
  END IF;
  INSERT INTO catalog_internal.hints (sku, source, hinted_at) VALUES (hint.sku, named, clock_timestamp());
  RETURN true;
END
$$;
