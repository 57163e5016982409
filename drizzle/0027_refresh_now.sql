-- Sellers may ask from SQL for SKUs now, and wait for the answers.
CREATE SEQUENCE "catalog_internal"."refreshes_asked" INCREMENT BY 1 MINVALUE 0 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE SEQUENCE "catalog_internal"."refreshes_paid" INCREMENT BY 1 MINVALUE 0 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE SEQUENCE "catalog_internal"."refreshes_refused" INCREMENT BY 1 MINVALUE 0 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "catalog_internal"."lock_refreshes" (

);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."refresh_places" (
	"place" smallint PRIMARY KEY NOT NULL,
	"pid" integer,
	"until" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."refresh_requests" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."refresh_requests_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"sku" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "asked_generation" integer;--> statement-breakpoint
CREATE INDEX "refresh_requests_sku" ON "catalog_internal"."refresh_requests" USING btree ("sku");
--> statement-breakpoint
INSERT INTO catalog_internal.refresh_places (place) SELECT generate_series(1, 20);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.refresh_requests IS 'SKUs that sellers have asked for (catalog.refresh), until the mirror has marked them.';
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.refresh_places IS 'Places of those who wait in catalog.refresh_now.';
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.lock_refreshes IS 'Empty. Locked while refreshes from SQL are paid for.';
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error, or for a second answer, is asked again at once. counts_as_live null leaves the live
-- flag as it is.
-- A SKU that was asked for by name (refresh_skus) stays ahead of all others until it is answered. Any other rank is the weight as it stands once the rows are locked, because locking them may have waited for whoever tells
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
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1) AND d.rank < 'Infinity';
  RETURN marked;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
--> statement-breakpoint
-- Tells the ledger of `most` SKUs what is pending of `watched`, and whether there is more. A SKU that is watched anew is
-- marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that is watched no longer, is not marked
-- for that; it gets its new rank at once where it is urgent, and with its next mark elsewhere.
-- Locks are taken in the order of everyone: lock_new_skus, known SKUs in order of sku, new SKUs, the ledger in order of
-- sku. Every row of the ledger is locked before its rank is compared, so that a concurrent mark has either read the
-- weight that counts now or is seen here. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each.
CREATE OR REPLACE FUNCTION catalog_internal.watched_to_ledger(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  told text[];
  marked text[];
BEGIN
  SELECT array_agg(sku), array_agg(sku) FILTER (WHERE pending = 'mark') INTO told, marked
  FROM (SELECT sku, pending FROM catalog_internal.watched WHERE pending IS NOT NULL ORDER BY sku LIMIT most) o;
  IF told IS NULL THEN
    RETURN false;
  END IF;
  IF EXISTS (SELECT FROM unnest(marked) AS m(sku) WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = m.sku)) THEN
    PERFORM catalog_internal.lock_new_skus();
  END IF;
  PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR UPDATE;
  INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT DO NOTHING;
  PERFORM FROM catalog_internal.due WHERE sku = ANY (told) ORDER BY sku FOR UPDATE;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM catalog_internal.watched w
  WHERE w.sku = ANY (told) AND d.sku = w.sku AND d.lane = 1 AND d.rank <> coalesce(w.weight, 1) AND d.rank < 'Infinity';
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;
  UPDATE catalog_internal.watched SET pending = NULL WHERE sku = ANY (told);
  RETURN cardinality(told) = most;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watched_to_ledger(integer) FROM PUBLIC;
--> statement-breakpoint
-- Statements that give catalog_reader and catalog_watcher what they are to have and lack: what a dump gave to roles that were not
-- there when it was loaded is gone, and with it that nobody else may call the functions: both are one command. Of a role that is not there nothing is said.
CREATE OR REPLACE FUNCTION catalog_internal.missing_rights() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH roles AS (
    SELECT rolname::text AS role FROM pg_roles WHERE rolname IN ('catalog_reader', 'catalog_watcher')
  ), relations AS (
    SELECT oid, relname FROM pg_class WHERE relnamespace = 'catalog'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
  ), functions AS (
    SELECT oid, coalesce(proacl, acldefault('f', proowner)) AS acl, CASE WHEN proname IN ('take_request', 'hint') OR proname LIKE 'refresh%' THEN 'catalog_watcher' ELSE 'catalog_reader' END AS role
    FROM pg_proc WHERE pronamespace = 'catalog'::regnamespace
  )
  SELECT format('GRANT USAGE ON SCHEMA catalog TO %I', role) FROM roles WHERE NOT has_schema_privilege(role, 'catalog', 'USAGE')
  UNION ALL
  SELECT format('GRANT SELECT ON %s TO %I', oid::regclass, role) FROM roles, relations
  WHERE role = 'catalog_reader' AND NOT has_table_privilege(role, oid, 'SELECT')
  UNION ALL
  SELECT format('GRANT %s ON %s TO %I', privilege, oid::regclass, role)
  FROM roles, relations, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
  WHERE role = 'catalog_watcher' AND relname = 'watchlist' AND NOT has_table_privilege(role, oid, privilege)
  UNION ALL
  SELECT format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', oid::regprocedure) FROM functions
  WHERE EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = 0)
  UNION ALL
  SELECT format('GRANT EXECUTE ON ROUTINE %s TO %I', oid::regprocedure, role) FROM roles JOIN functions USING (role)
  WHERE NOT EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = to_regrole(role))
  UNION ALL
  SELECT format('ALTER DEFAULT PRIVILEGES IN SCHEMA catalog GRANT SELECT ON TABLES TO %I', role) FROM roles
  WHERE role = 'catalog_reader' AND NOT EXISTS (
    SELECT FROM pg_default_acl, aclexplode(defaclacl)
    WHERE defaclnamespace = 'catalog'::regnamespace AND defaclobjtype = 'r' AND grantee = to_regrole(role) AND privilege_type = 'SELECT'
  )
$$;

REVOKE ALL ON FUNCTION catalog_internal.missing_rights() FROM PUBLIC;
--> statement-breakpoint
-- What goes with rows of catalog.skus, whoever deletes them: the ledger, prices with a line in their history, products, rates, draws, hints, requests. A trigger
-- and no foreign keys: these would check each row that a baseline or an answer inserts, and lock its SKU for it. The
-- ledger is locked in order of sku, as everyone locks it; history is written last.
CREATE OR REPLACE FUNCTION catalog_internal.forget_with_skus() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    TRUNCATE catalog_internal.due, catalog_internal.unreported_moves, catalog_internal.live_rates, catalog_internal.random_looks, catalog_internal.live_backlog, catalog_internal.hints, catalog_internal.waiting_hints, catalog_internal.refresh_requests, catalog.products, catalog.prices;
    RETURN NULL;
  END IF;
  PERFORM FROM catalog_internal.due WHERE sku IN (SELECT sku FROM gone) ORDER BY sku FOR UPDATE;
  DELETE FROM catalog_internal.due USING gone WHERE due.sku = gone.sku;
  DELETE FROM catalog_internal.unreported_moves USING gone WHERE unreported_moves.sku = gone.sku;
  DELETE FROM catalog_internal.live_rates USING gone WHERE live_rates.sku = gone.sku;
  DELETE FROM catalog_internal.random_looks USING gone WHERE random_looks.sku = gone.sku;
  DELETE FROM catalog_internal.live_backlog USING gone WHERE live_backlog.sku = gone.sku;
  DELETE FROM catalog_internal.hints USING gone WHERE hints.sku = gone.sku;
  DELETE FROM catalog_internal.waiting_hints USING gone WHERE waiting_hints.sku = gone.sku;
  DELETE FROM catalog_internal.refresh_requests USING gone WHERE refresh_requests.sku = gone.sku;
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

REVOKE ALL ON FUNCTION catalog_internal.forget_with_skus() FROM PUBLIC;
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
  UPDATE catalog_internal.tasks SET next_at = clock_timestamp()
  WHERE task = 'reprice' AND failures > 0 AND next_at > clock_timestamp() AND next_at < 'infinity';
  resumed := FOUND;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refresh_skus(text[]) FROM PUBLIC;
--> statement-breakpoint
-- Whether nobody keeps what sellers have asked for from being written, and, until the transaction ends, nobody will: calls go on without it
-- rather than wait for whoever locks it.
CREATE OR REPLACE FUNCTION catalog_internal.refreshes_are_free() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.refresh_requests IN ROW EXCLUSIVE MODE NOWAIT;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refreshes_are_free() FROM PUBLIC;
--> statement-breakpoint
-- Whether sellers have asked for SKUs that can be marked: one that is asked for at the moment is left until the answer.
CREATE OR REPLACE FUNCTION catalog_internal.refreshes_came() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.refreshes_are_free() THEN
    RETURN false;
  END IF;
  RETURN EXISTS (
    SELECT FROM catalog_internal.refresh_requests r
    WHERE NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku AND d.claim IS NOT NULL)
  );
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refreshes_came() FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs for at most `most` requests of sellers, the oldest first. One that is asked for at the moment is left until the answer: an answer to
-- an earlier request would put it off again. One that somebody has locked is left for the next time. Returns how many it marked.
CREATE OR REPLACE FUNCTION catalog_internal.take_refreshes(most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  requests bigint[];
  asked text[];
  free text[];
BEGIN
  IF NOT catalog_internal.refreshes_are_free() THEN
    RETURN 0;
  END IF;
  SELECT array_agg(p.id), array_agg(DISTINCT p.sku) INTO requests, asked FROM (
    SELECT r.id, r.sku FROM catalog_internal.refresh_requests r
    WHERE NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku AND d.claim IS NOT NULL)
    ORDER BY r.id LIMIT most FOR UPDATE OF r SKIP LOCKED
  ) p;
  IF requests IS NULL THEN
    RETURN 0;
  END IF;
  SELECT coalesce(array_agg(f.sku), '{}') INTO free FROM (
    SELECT d.sku FROM catalog_internal.due d WHERE d.sku = ANY (asked) AND d.claim IS NULL ORDER BY d.sku FOR UPDATE SKIP LOCKED
  ) f;
  -- By their ids, locked above: of another request for one of these SKUs somebody else may be about to mark it.
  DELETE FROM catalog_internal.refresh_requests r
  WHERE r.id = ANY (requests) AND (r.sku = ANY (free) OR NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku));
  PERFORM catalog_internal.refresh_skus(free);
  RETURN cardinality(free);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.take_refreshes(integer) FROM PUBLIC;
--> statement-breakpoint
-- Pays for refreshes from SQL, worth so many bulk calls, and counts their SKUs. They have a quarter of the mirror's calls, at most a minute's
-- worth at once: a call is paid by moving the time until which all is paid on, at most to a minute from now. What is paid stays so,
-- also where the caller rolls back: hence the sequence, and a lock that ends at once with a subtransaction (as in catalog.take_request).
-- Returns after how many seconds to come again; 0: it is paid, infinity: it is worth more than a minute's.
CREATE OR REPLACE FUNCTION catalog_internal.pay_refreshes(calls float8, skus integer) RETURNS float8
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  minute CONSTANT float8 := 60e6;
  most float8;
  moment float8;
  paid float8;
  wait float8;
BEGIN
  SELECT greatest(1, s.rate_share * 60 / s.rate_window / 4) INTO most FROM catalog_internal.settings s;
  IF calls > most THEN
    RETURN 'Infinity';
  END IF;
  BEGIN
    LOCK TABLE catalog_internal.lock_refreshes IN EXCLUSIVE MODE;
    moment := extract(epoch FROM clock_timestamp()) * 1e6;
    paid := coalesce(pg_sequence_last_value('catalog_internal.refreshes_paid'), 0);
    -- Later than it can be: the clock was ahead.
    IF paid > moment + minute OR paid < moment THEN
      paid := moment;
    END IF;
    paid := paid + calls / most * minute;
    wait := greatest(0, paid - moment - minute) / 1e6;
    IF wait = 0 THEN
      PERFORM setval('catalog_internal.refreshes_paid', floor(paid)::bigint),
        setval('catalog_internal.refreshes_asked', coalesce(pg_sequence_last_value('catalog_internal.refreshes_asked'), 0) + skus);
    END IF;
    RAISE SQLSTATE 'CM000';
  EXCEPTION
    WHEN SQLSTATE 'CM000' THEN NULL;
    WHEN lock_not_available THEN wait := 1;
  END;
  RETURN wait;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.pay_refreshes(float8, integer) FROM PUBLIC;
--> statement-breakpoint
-- Why no request leaves now, as a sentence without its full stop; null: requests leave. A daemon is there while the session is that its row names
-- (src/store/instance.ts).
CREATE OR REPLACE FUNCTION catalog_internal.nothing_leaves() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  p catalog_internal.pause;
  c catalog_internal.pace;
  iso CONSTANT text := 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
BEGIN
  IF NOT EXISTS (
    SELECT FROM catalog_internal.instances i JOIN pg_stat_activity a
      ON a.pid = i.pid AND a.datname = current_database() AND (a.backend_start IS NULL OR a.backend_start = i.backend_start)
  ) THEN
    RETURN 'no daemon is running';
  END IF;
  SELECT * INTO p FROM catalog_internal.pause WHERE resumed_by IS NULL AND until > clock_timestamp();
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

REVOKE ALL ON FUNCTION catalog_internal.nothing_leaves() FROM PUBLIC;
--> statement-breakpoint
-- Writes down that a seller asks for SKUs: nothing that the mirror needs is locked, however long the caller's transaction stays open. Those that
-- are known come back, each with the generation that its mark has before: an answer to a later one was asked for after this.
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
  ) k;
  known := coalesce(known, '{}');
  missing := ARRAY(SELECT w.sku FROM unnest(wanted) AS w(sku) WHERE w.sku <> ALL (known) ORDER BY w.sku);
  IF calls > 0 AND EXISTS (SELECT FROM catalog_internal.tasks WHERE task = 'reprice' AND failures > 0 AND next_at > clock_timestamp()) THEN
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

REVOKE ALL ON FUNCTION catalog_internal.ask_refresh(text[], boolean) FROM PUBLIC;
--> statement-breakpoint
-- A seller wants SKUs to be asked for now. The mirror marks them once the caller's transaction is committed, before its next call (take_refreshes).
CREATE OR REPLACE FUNCTION catalog.refresh(skus text[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked record;
  why text;
BEGIN
  SELECT * INTO asked FROM catalog_internal.ask_refresh(refresh.skus, false);
  IF cardinality(asked.known) > 0 THEN
    why := catalog_internal.nothing_leaves();
    IF why IS NOT NULL THEN
      RAISE WARNING 'nothing is refreshed now: %', why USING HINT = 'The SKUs stay due.';
    END IF;
  END IF;
  RETURN cardinality(asked.known);
END
$$;

REVOKE ALL ON FUNCTION catalog.refresh(text[]) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.refresh(text[]) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.refresh(text[]) IS 'Has SKUs asked for before everything else, and ends what holds them back after errors and deferrals. Returns how many are due now: unknown ones and nulls are left out, and each counts once. At most 1,000 a call, and a quarter of the mirror''s requests for all callers together; above that it fails with SQLSTATE CM004 and says when to try again. Does not wait: catalog.refresh_now does.';
--> statement-breakpoint
-- The first step of catalog.refresh_now: as catalog.refresh, and takes a place among those who wait. Returns what it waits for, null where that
-- is nothing. `refused` is how Postgres refused a COMMIT inside of a block with an exception handler. It always does, and gives another reason where it
-- would refuse any COMMIT: the same that it gives here, in a function, where none is possible.
CREATE OR REPLACE FUNCTION catalog.refresh_begin(skus text[], timeout interval, refused text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
    RAISE WARNING '% of the SKUs are not in the catalog: %', cardinality(asked.missing),
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

REVOKE ALL ON FUNCTION catalog.refresh_begin(text[], interval, text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.refresh_begin(text[], interval, text) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.refresh_begin(text[], interval, text) IS 'A step of catalog.refresh_now, which calls it.';
--> statement-breakpoint
-- A step of catalog.refresh_now: waits a moment, and says what is still to be waited for and whether to wait on. Answered is a SKU once an answer
-- is committed to a request that was sent after the call: one of a later generation. Nothing is waited for of which the partner has
-- said meanwhile that it needs longer than there is time (deferred, or an error).
CREATE OR REPLACE FUNCTION catalog.refresh_wait(INOUT ticket jsonb, OUT waits boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

REVOKE ALL ON FUNCTION catalog.refresh_wait(jsonb) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.refresh_wait(jsonb) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.refresh_wait(jsonb) IS 'A step of catalog.refresh_now, which calls it.';
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
  SELECT next_at INTO failing FROM catalog_internal.tasks WHERE task = 'reprice' AND failures > 0 AND next_at > clock_timestamp();
  SELECT string_agg(format('%s (%s)', n.sku, n.state), ', ' ORDER BY n.place) FILTER (WHERE n.place <= 10),
    coalesce(why, 'bulk calls fail, and the next one is made ' || CASE WHEN isfinite(failing) THEN 'at ' || to_char(failing, iso) ELSE 'when an operator says so' END,
      format('%s asked for at the moment, %s put off by the partner, %s waiting for their turn',
        count(*) FILTER (WHERE n.state = 'asked for'), count(*) FILTER (WHERE n.held_until IS NOT NULL), count(*) FILTER (WHERE n.state LIKE '%due%')))
  INTO named, why
  FROM (
    SELECT t.place, d.sku, CASE WHEN d.claim IS NULL THEN d.held_until END AS held_until,
      CASE WHEN d.claim IS NOT NULL THEN 'asked for'
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

REVOKE ALL ON FUNCTION catalog.refresh_end(jsonb) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.refresh_end(jsonb) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.refresh_end(jsonb) IS 'A step of catalog.refresh_now, which calls it.';
--> statement-breakpoint
-- SKUs are asked for now, and it returns when the partner's answers are committed. Each step is a transaction of its own, so the wait holds no
-- lock and no snapshot. A procedure that commits has its caller's rights and search_path: hence nothing here is named
-- without its schema, and no operator is used; all else is in functions that run as the mirror.
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
  held := catalog.refresh_begin(refresh_now.skus, refresh_now.timeout, refused);
  LOOP
    COMMIT;
    SELECT w.ticket, w.waits INTO held, waits FROM catalog.refresh_wait(held) AS w;
    EXIT WHEN NOT waits;
  END LOOP;
  COMMIT;
  PERFORM catalog.refresh_end(held);
END
$$;

REVOKE ALL ON PROCEDURE catalog.refresh_now(text[], interval) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON PROCEDURE catalog.refresh_now(text[], interval) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON PROCEDURE catalog.refresh_now(text[], interval) IS 'As catalog.refresh, and returns when the partner''s answers to requests that were sent after the call are committed: prices, or that a SKU is not found. Fails with SQLSTATE CM003 at the timeout (at most 10 minutes), or sooner where the partner puts all that is left off for longer, and says what the mirror is doing. Unknown SKUs are left out, with a warning. Not inside of a transaction or a function. At most 20 sessions wait at once; above that, and above the bounds of catalog.refresh, it fails with SQLSTATE CM004.';
