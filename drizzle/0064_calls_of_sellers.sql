-- What sellers call waits, and is answered, alike whatever isolation level their sessions begin transactions with; a row of
-- the ledger that is deleted while somebody waits for its SKU is no answer; and tables of one row are joined with nothing.
CREATE OR REPLACE PROCEDURE catalog.refresh_now(skus text[], timeout interval DEFAULT '00:01:00'::interval)
LANGUAGE plpgsql AS $$
DECLARE
  held pg_catalog.jsonb;
  waits boolean;
  refused pg_catalog.text;
BEGIN
  BEGIN
    COMMIT;
  EXCEPTION WHEN invalid_transaction_termination THEN
    refused := SQLERRM;
  END;
  PERFORM catalog.refresh_begin(NULL, NULL, refused);
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  held := catalog.refresh_begin(refresh_now.skus, refresh_now.timeout, NULL);
  LOOP
    COMMIT AND CHAIN;
    SELECT w.ticket, w.waits INTO held, waits FROM catalog.refresh_wait(held) AS w;
    EXIT WHEN NOT waits;
  END LOOP;
  COMMIT AND CHAIN;
  PERFORM catalog.refresh_end(held);
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
  IF refused IS NOT NULL THEN
    BEGIN
      COMMIT;
    EXCEPTION WHEN invalid_transaction_termination THEN
      IF SQLERRM = refused THEN
        RAISE EXCEPTION 'catalog.refresh_now cannot wait inside of a transaction or a function' USING ERRCODE = 'active_sql_transaction',
          HINT = 'Send CALL as a statement of its own, with autocommit. Inside of a transaction use SELECT catalog.refresh(…), which does not wait.';
      END IF;
    END;
    RETURN NULL;
  END IF;
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
  SELECT coalesce(jsonb_agg(t.sku), '[]'), coalesce(jsonb_agg(CASE WHEN d.sku IS NULL THEN -1 ELSE w.after END), '[]'), coalesce(bool_and(
    CASE WHEN d.sku IS NULL THEN NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = t.sku)
      ELSE d.claim IS NULL AND coalesce(d.held_until > clock_timestamp() + make_interval(secs => remaining), false)
        AND NOT EXISTS (SELECT FROM catalog_internal.refresh_requests r WHERE r.sku = d.sku) END), true)
  INTO skus, after, hopeless
  FROM ROWS FROM (jsonb_array_elements_text(ticket -> 'skus'), jsonb_array_elements_text(ticket -> 'after') ) AS t(sku, number)
    CROSS JOIN LATERAL (SELECT t.number::integer AS after) w
    LEFT JOIN catalog_internal.due d ON d.sku = t.sku
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
    SELECT t.place, t.sku, CASE WHEN d.claim IS NULL THEN d.held_until END AS held_until,
      CASE WHEN d.claim IS NOT NULL THEN 'asked for'
        WHEN d.outside_due_at IS NOT NULL THEN 'out of scope'
        WHEN d.sku IS NULL AND NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = t.sku) THEN 'not in the catalog any longer'
        -- Also where the daemon has not read yet that it was asked for.
        WHEN d.held_until IS NULL THEN 'due'
        ELSE format('%s until %s', CASE WHEN d.failures > 0 THEN 'failed' ELSE 'deferred' END, to_char(d.held_until, iso)) END AS state
    FROM jsonb_array_elements_text(ticket -> 'skus') WITH ORDINALITY AS t(sku, place) LEFT JOIN catalog_internal.due d ON d.sku = t.sku
  ) n;
  RAISE EXCEPTION '% of % SKUs were answered within % s: %', (ticket ->> 'asked')::integer - missing, ticket ->> 'asked',
    round((ticket ->> 'waited')::numeric, 1), why
    USING ERRCODE = 'CM003', DETAIL = 'Not answered: ' || named || CASE WHEN missing > 10 THEN ', …' ELSE '' END,
    HINT = 'They stay due; catalog.sku_trust tells when each is expected to be refreshed.';
END
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION catalog.take_request(lane text DEFAULT 'other') RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  s catalog_internal.settings;
  p catalog_internal.pace;
  moment timestamptz;
  span interval;
  allowed integer;
  own integer;
  oldest timestamptz;
  others record;
  wait float8;
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') AND transaction_timestamp() < clock_timestamp() - interval '1 second' THEN
    RAISE EXCEPTION 'this transaction does not see what the mirror has sent since it began' USING ERRCODE = 'CM002',
      HINT = 'Call catalog.take_request outside of transactions, or in one whose isolation level is read committed.';
  END IF;
  BEGIN
    LOCK TABLE catalog_internal.lock_pace IN EXCLUSIVE MODE;
    -- The mirror's clock counts whole milliseconds.
    moment := date_trunc('milliseconds', clock_timestamp());
    SELECT * INTO s FROM catalog_internal.settings;
    SELECT * INTO p FROM catalog_internal.pace;
    span := make_interval(secs => s.rate_window + least(0.5, s.rate_window / 20));
    allowed := catalog_internal.sends_per_window(s.rate_limit, s.rate_window);
    SELECT count(*), min(sent_at) INTO own, oldest FROM catalog_internal.pace_sends WHERE sent_at > moment - span AND NOT other_user;
    SELECT * INTO others FROM catalog_internal.others_sent(span);
    -- After a refusal everyone backs off; then one half-open request goes out, and it is the mirror's. A half-open request nobody sends is not waited for.
    IF p.backoff_until > moment - interval '2 minutes' THEN
      wait := CASE WHEN p.backoff_until > moment THEN ceil(extract(epoch FROM p.backoff_until - moment) * 1000) ELSE 1000 END;
    ELSIF own + others.sent >= allowed THEN
      wait := greatest(1, ceil(extract(epoch FROM least(oldest + span, others.leaves_at) - moment) * 1000));
    ELSIF others.sent >= greatest(1, allowed - s.rate_floor) THEN
      wait := greatest(1, ceil(extract(epoch FROM others.leaves_at - moment) * 1000));
    ELSE
      PERFORM catalog_internal.count_other(moment);
      wait := 0;
    END IF;
    RAISE SQLSTATE 'CM000';
  EXCEPTION
    WHEN SQLSTATE 'CM000' THEN NULL;
    -- A daemon that is frozen with the lock loses it within ten seconds.
    WHEN lock_not_available THEN RETURN 1000;
  END;
  IF wait = 0 AND current_setting('transaction_isolation') <> 'serializable' THEN
    INSERT INTO catalog_internal.pace_sends (sent_at, lane, other_user) VALUES (moment, left(coalesce(take_request.lane, 'other'), 64), true);
  END IF;
  RETURN wait;
END
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION catalog_internal.ask_refresh(skus text[], waits boolean, OUT known text[], OUT generations integer[], OUT missing text[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  most CONSTANT integer := 1000;
  wanted text[] := ARRAY(SELECT DISTINCT w.sku FROM unnest(ask_refresh.skus) AS w(sku) WHERE w.sku IS NOT NULL);
  asked text[];
  apart boolean := current_setting('transaction_isolation') = 'serializable';
  others_at_once float8 := (SELECT g.bulk_max_skus FROM catalog_internal.settings g);
  live_at_once float8 := coalesce((SELECT y.live_budget FROM catalog_internal.sync y), (SELECT g.bulk_live_budget FROM catalog_internal.settings g));
  incident boolean := (SELECT l.incident_since IS NOT NULL FROM catalog_internal.live_plan l);
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
      CASE WHEN apart THEN false ELSE EXISTS (SELECT FROM catalog_internal.refresh_requests r WHERE r.sku = d.sku) END AS requested,
      d.lane = 1 AND d.due_at <= clock_timestamp() AND d.held_until IS NULL AND d.largest_call IS NULL AS next,
      1 / greatest(1, CASE WHEN d.largest_call IS NOT NULL THEN d.largest_call WHEN d.live OR incident THEN live_at_once ELSE others_at_once END) AS part
    FROM unnest(wanted) AS w(sku) JOIN catalog.skus s ON s.sku = w.sku JOIN catalog_internal.due d ON d.sku = w.sku
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
CREATE OR REPLACE FUNCTION catalog.hint(sku text, source text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  -- A hundred thousand have a tenth of that.
  most_bytes CONSTANT bigint := 128 * 1024 * 1024;
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
  IF current_setting('transaction_isolation') = 'serializable' THEN
    IF pg_relation_size('catalog_internal.hints') >= most_bytes THEN
      RETURN false;
    END IF;
    INSERT INTO catalog_internal.hints (sku, source, hinted_at) VALUES (hint.sku, named, clock_timestamp());
    RETURN true;
  END IF;
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
--> statement-breakpoint
CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT (s.one).snapshot_id, (s.one).snapshot_generated_at, (s.one).manifest_applied_at, (s.one).delta_checked_at,
       k.skus, k.live_skus - o.live_skus AS live_skus, k.pending_skus - o.pending_skus AS pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p.one) AS requests_per_minute,
       CASE WHEN (p.one).backoff_until > statement_timestamp() THEN (p.one).backoff_until END AS backing_off_until,
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
