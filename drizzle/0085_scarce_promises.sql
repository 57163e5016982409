-- Live prices a minute that the partner computes, as far as that is known: its ceiling, as learned; where it has computed
-- none for more than three minutes, less than one in that time. Null: no ceiling has been met. The one place that decides
-- what can be counted on, for promises as for the estimate of the next refresh.
CREATE OR REPLACE FUNCTION catalog_internal.live_rate() RETURNS double precision
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT least(per_minute, CASE WHEN blocked_at < clock_timestamp() - interval '3 minutes' THEN 60 / extract(epoch FROM clock_timestamp() - blocked_at)::double precision END)
    FROM catalog_internal.live_ceiling WHERE per_minute IS NOT NULL
  );
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.live_rate() FROM PUBLIC;
--> statement-breakpoint
-- How long a live SKU waits for its turn once it is due, or its wait is over, beside all live SKUs that were due at the last
-- count, at what the partner computes (live_rate): nothing while no ceiling is known. Null: nobody knows, because that was
-- not counted in the last five minutes, no live price was computed for half an hour, or the live source fails. It is read
-- with each SKU, and so leaves the pace out, which is seldom lower than such a ceiling. SECURITY DEFINER: a view calls it
-- as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.live_ahead() RETURNS interval
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c catalog_internal.live_ceiling;
  out_since timestamptz;
BEGIN
  SELECT * INTO c FROM catalog_internal.live_ceiling;
  SELECT outage_since INTO out_since FROM catalog_internal.live_plan;
  -- As isOutage in src/store/live/limits.ts.
  IF out_since IS NOT NULL AND greatest(out_since, c.credit_from) > clock_timestamp() - interval '1 hour'
     OR c.per_minute IS NOT NULL AND c.blocked_at < clock_timestamp() - interval '30 minutes' THEN
    RETURN NULL;
  ELSIF c.per_minute IS NULL THEN
    RETURN interval '0';
  END IF;
  RETURN (
    SELECT make_interval(secs => 60 / catalog_internal.live_rate() * (
      SELECT coalesce(sum((r ->> 'count')::float8), 0) FROM jsonb_array_elements(n.counts -> 'due') AS r WHERE r ->> 'reason' IN ('live', 'deferred')
    ))
    FROM catalog_internal.catalog_counts n WHERE n.counted_at > clock_timestamp() - interval '5 minutes'
  );
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.live_ahead() TO PUBLIC;
--> statement-breakpoint
-- How many seconds earlier a live SKU comes first for its promise where `rate` live prices a minute are computed (live_rate),
-- so that it may be deferred, wait for DEFERRED_INTERVAL as it is by default, and be asked for again in time. At low
-- rates about one of `rate` + 1 is deferred: below 4 it may be twice in a row.
CREATE OR REPLACE FUNCTION catalog_internal.deferral_lead(rate double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN rate < 4 THEN 1050 WHEN rate < 32 THEN 390 ELSE 0 END::double precision;
END;

REVOKE ALL ON FUNCTION catalog_internal.deferral_lead(double precision) FROM PUBLIC;
--> statement-breakpoint
-- No shorter age (seconds) can be promised of a live SKU where `rate` live prices a minute are computed (live_rate): it
-- leaves no time to be asked for again after a deferral, and where few are deferred each costs many times max_age.
CREATE OR REPLACE FUNCTION catalog_internal.shortest_promise(rate double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(CASE WHEN rate < 32 THEN 45 + 2 * catalog_internal.deferral_lead(rate) ELSE 11000 / (1 + rate) END, 0);
END;

REVOKE ALL ON FUNCTION catalog_internal.shortest_promise(double precision) FROM PUBLIC;
--> statement-breakpoint
-- As promised_interval, of a SKU that counts as live where `rate` live prices a minute are computed (live_rate; null: no
-- ceiling is known, or it does not count as live): earlier by what a deferral may take.
CREATE OR REPLACE FUNCTION catalog_internal.live_promised_interval(max_age double precision, rate double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT greatest(catalog_internal.promised_interval(max_age) - catalog_internal.deferral_lead(rate), catalog_internal.promised_interval(max_age) / 2);
END;

REVOKE ALL ON FUNCTION catalog_internal.live_promised_interval(double precision, double precision) FROM PUBLIC;
--> statement-breakpoint
-- What promises of a price's age (catalog.watchlist.max_age) may take, a minute: requests, and with these
-- refreshes of SKUs that count as live, and of others. A fifth of everything is left to all other SKUs. As
-- the pacer would allow it at this moment (src/pace/policy.ts: ownMost, ceilingAt; after a back-off with what
-- requests resume at), with what calls have taught. `hindered`: what keeps all requests back at present;
-- null: nothing. SECURITY DEFINER: a seller's INSERT and a view call it.
CREATE OR REPLACE FUNCTION catalog_internal.promise_capacity(
  OUT requests double precision, OUT live double precision, OUT others double precision, OUT incident boolean, OUT hindered text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part CONSTANT double precision := 0.8;
  g catalog_internal.settings;
  p catalog_internal.pace;
  most double precision;
  sent_by_others integer;
  per_call double precision;
  budget double precision;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  most := catalog_internal.sends_per_window(g.rate_share, g.rate_window);
  SELECT sent INTO sent_by_others FROM catalog_internal.others_sent(make_interval(secs => g.rate_window));
  IF sent_by_others > 0 THEN
    most := least(most, greatest(1, g.rate_floor, catalog_internal.sends_per_window(g.rate_limit, g.rate_window) - sent_by_others - ceil(g.rate_limit * 0.05)));
  END IF;
  most := least(most, CASE WHEN p.backoff_until IS NOT NULL THEN coalesce(p.resume_at, 20) ELSE catalog_internal.present_ceiling(p) * g.rate_window / 60 END);
  requests := part * most * 60 / g.rate_window;
  per_call := least(g.bulk_max_skus, (SELECT size FROM catalog_internal.call_size));
  SELECT least(per_call, greatest(1, floor(coalesce(live_budget, g.bulk_live_budget)))) INTO budget FROM catalog_internal.sync;
  live := least(requests * budget, part * catalog_internal.live_rate());
  others := requests * greatest(1, per_call - budget);
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  hindered := CASE
    WHEN EXISTS (SELECT FROM catalog_internal.pause z WHERE catalog_internal.pause_holds(z)) THEN 'paused'
    WHEN p.backoff_until IS NOT NULL THEN 'backing off after a refusal'
    WHEN EXISTS (SELECT FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t)) THEN 'calls are failing'
  END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.promise_capacity() TO PUBLIC;
--> statement-breakpoint
-- Which promises the account can keep, the one place that decides it: in order of weight, and among equal
-- ones those first that ask for the least, until what there is for promises is used up. All of them kept in
-- turn would each be late as soon as they are too many together. A live SKU's is none that is shorter than can be
-- kept at the partner's ceiling, and takes nothing from others. `demand` is in refreshes a minute. SKUs that are not found or removed have no price that could get old, and those out of scope are not asked for: they
-- need nothing and are left out.
CREATE OR REPLACE FUNCTION catalog_internal.promises_that_fit(skus text[], max_ages double precision[], weights real[])
RETURNS TABLE (sku text, live boolean, demand double precision, fits boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT n.sku, n.live, n.demand,
         n.is_possible AND sum(n.demand) FILTER (WHERE n.is_possible) OVER (PARTITION BY n.live ORDER BY n.weight DESC, n.demand, n.sku COLLATE "C")
           <= CASE WHEN n.live THEN c.live ELSE c.others END
  FROM catalog_internal.promise_capacity() c
  CROSS JOIN (SELECT catalog_internal.live_rate() AS rate) r
  CROSS JOIN LATERAL (
    SELECT a.sku, a.weight, k.live, 60 / catalog_internal.live_promised_interval(a.max_age, CASE WHEN k.live THEN r.rate END) AS demand,
           NOT (k.live AND a.max_age < catalog_internal.shortest_promise(r.rate)) AS is_possible
    FROM unnest(skus, max_ages, weights) AS a(sku, max_age, weight)
    LEFT JOIN catalog.skus s ON s.sku = a.sku LEFT JOIN catalog_internal.due d ON d.sku = a.sku
    CROSS JOIN LATERAL (SELECT coalesce(d.live OR c.incident, false) AS live) k
    WHERE coalesce(s.state IN ('pending', 'priced'), true) AND d.outside_due_at IS NULL
  ) n;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.promises_that_fit(text[], double precision[], real[]) FROM PUBLIC;
--> statement-breakpoint
-- Tells the ledger of `most` SKUs what is pending of `watched`, and whether there is more. A SKU that is
-- watched anew is marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that
-- is watched no longer, is not marked for that; it gets its new rank at once where it is urgent, and with its
-- next mark elsewhere. A promise of its age holds from here on: one that was never asked for is to be at
-- once. Locks are taken in the order of everyone: lock_new_skus, known SKUs in order of sku, new SKUs, the
-- ledger in order of sku. Every row of the ledger is locked before its rank is compared, so that a concurrent
-- mark has either read the weight that counts now or is seen here. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each. What is written to
-- a row is looked up for it, as tables that were analyzed while they were empty would be joined by comparing
-- each row with each.
CREATE OR REPLACE FUNCTION catalog_internal.watched_to_ledger(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  told text[];
  marked text[];
  added text[];
  rate CONSTANT double precision := catalog_internal.live_rate();
BEGIN
  SELECT array_agg(sku), array_agg(sku) FILTER (WHERE pending = 'mark') INTO told, marked
  FROM (SELECT sku, pending FROM catalog_internal.watched WHERE pending IS NOT NULL ORDER BY sku LIMIT most) o;
  IF told IS NULL THEN
    RETURN false;
  END IF;
  IF cardinality(marked) > (SELECT count(*) FROM catalog.skus WHERE sku = ANY (marked)) THEN
    PERFORM catalog_internal.lock_new_skus();
  END IF;
  PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR NO KEY UPDATE;
  WITH new AS (
    INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT DO NOTHING RETURNING sku
  )
  SELECT array_agg(sku) INTO added FROM new;
  PERFORM FROM catalog_internal.due WHERE sku = ANY (told) ORDER BY sku FOR UPDATE;
  UPDATE catalog_internal.due d SET rank = coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1)
  WHERE d.sku = ANY (told) AND d.lane = 1 AND d.rank < 'Infinity'
    AND d.rank <> coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1);
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  -- Answers that were applied meanwhile are seen, because their rows are locked.
  UPDATE catalog_internal.due d SET (promised_at, promised_by) = (
    -- One that is late from the beginning is no more urgent than one that was kept until now.
    SELECT n.promised_at, greatest(n.promised_at, n.promised_since) + (n.max_age - n.every) FROM (
      SELECT w.promised_since, make_interval(secs => w.max_age) AS max_age, i.every,
        CASE WHEN s.state = 'pending' THEN w.promised_since ELSE s.asked_at + i.every END AS promised_at
      FROM catalog_internal.watched w JOIN catalog.skus s ON s.sku = w.sku
      CROSS JOIN LATERAL (
        SELECT make_interval(secs => catalog_internal.live_promised_interval(w.max_age, CASE WHEN d.live THEN rate END)) AS every
      ) i
      WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL
    ) n WHERE n.promised_at IS NOT NULL
  )
  WHERE d.sku = ANY (told) AND (d.promised_at IS NOT NULL
    OR EXISTS (SELECT FROM catalog_internal.watched w WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL));
  DELETE FROM catalog_internal.promise_cases p USING catalog_internal.watched w
  WHERE w.sku = ANY (told) AND w.max_age IS NULL AND p.sku = w.sku;
  -- Nobody but the watchlist has named it, nor has it been asked for: it is forgotten as one in scope (forgetUnknown),
  -- and not asked for its metadata.
  UPDATE catalog_internal.due d SET reason = 'watched', lane = 0, due_at = 'infinity'
  FROM catalog.skus s, catalog_internal.watched w
  WHERE w.sku = ANY (told) AND w.weight IS NULL AND s.sku = w.sku AND s.state = 'pending' AND NOT s.in_manifest
    AND d.sku = w.sku AND d.reason = 'scope' AND d.generation = 1 AND d.rank < 'Infinity'
    AND d.claim IS NULL AND d.deferrals = 0 AND d.failures = 0;
  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;
  UPDATE catalog_internal.watched SET pending = NULL WHERE sku = ANY (told);
  IF catalog_internal.add_sku_changes(added, NULL, NULL, NULL) > 0 THEN
    PERFORM catalog_internal.notify_changes();
  END IF;
  RETURN cardinality(told) = most;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watched_to_ledger(integer) FROM PUBLIC;
--> statement-breakpoint
-- Says at once to whoever asks for a promise that the account cannot keep: the statement's own rows count,
-- and those of nobody else's open transaction. It writes nothing and waits for nobody but a migration. In a
-- SERIALIZABLE transaction others' promises are those that the mirror has read: sellers who each read the
-- watchlist and add to it would make each other fail. To weigh all promises takes long where there are many:
-- for ten seconds a session remembers what they need together (in a setting, which goes back where its
-- transaction does). Meanwhile a statement of few rows adds what these need, and where that fits, so do all;
-- what others have asked for since is weighed after that. An UPDATE that leaves promises as the mirror has
-- read them asks for none.
-- SECURITY DEFINER, because catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.warn_of_promises() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  apart CONSTANT boolean := current_setting('transaction_isolation') = 'serializable';
  few CONSTANT integer := 100;
  weighed_at text := round(extract(epoch FROM clock_timestamp())::numeric, 3)::text;
  remembered text[];
  fits boolean := false;
  rate CONSTANT double precision := catalog_internal.live_rate();
  shortest CONSTANT double precision := catalog_internal.shortest_promise(rate);
  asked record;
  c record;
  n record;
BEGIN
  SELECT array_agg(b.sku) AS skus, array_agg(b.max_age) AS ages, array_agg(b.weight) AS weights INTO asked
  FROM (SELECT sku, extract(epoch FROM max_age)::double precision AS max_age, weight FROM becomes WHERE max_age IS NOT NULL) b
  WHERE TG_OP <> 'UPDATE' OR NOT EXISTS (
    SELECT FROM catalog_internal.watched w WHERE w.sku = b.sku AND w.max_age = b.max_age AND w.weight = b.weight
  );
  IF asked.skus IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT * INTO c FROM catalog_internal.promise_capacity();
  -- Its owner may have set it to anything.
  remembered := regexp_match(current_setting('catalog_internal.promised', true),
    '^' || apart::text || ' ([0-9]{1,12}[.][0-9]{3}) ([0-9]{1,12}[.][0-9]{6}) ([0-9]{1,12}[.][0-9]{6})$');
  IF cardinality(asked.skus) <= few AND weighed_at::numeric - remembered[1]::numeric BETWEEN 0 AND 10 THEN
    SELECT remembered[2]::double precision + coalesce(sum(f.demand) FILTER (WHERE f.live), 0) AS live,
           remembered[3]::double precision + coalesce(sum(f.demand) FILTER (WHERE NOT f.live), 0) AS others, bool_and(f.fits) AS each
    INTO n FROM catalog_internal.promises_that_fit(asked.skus, asked.ages, asked.weights) f;
    fits := n.live <= c.live AND n.others <= c.others AND coalesce(n.each, true);
  END IF;
  IF fits THEN
    weighed_at := remembered[1];
  ELSE
    SELECT count(*) AS promises, count(*) FILTER (WHERE NOT f.fits) AS left_out,
           count(*) FILTER (WHERE f.live AND f.demand > 60 / nullif(catalog_internal.live_promised_interval(shortest, rate), 0)) AS too_short,
           coalesce(sum(f.demand) FILTER (WHERE f.live), 0) AS live,
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
    IF n.left_out > 0 AND n.left_out = n.too_short THEN
      RAISE WARNING 'the partner computes % live prices a minute: % of % promises are shorter than % and not kept',
        round(rate::numeric, 1), n.left_out, n.promises, make_interval(secs => ceil(shortest))
      USING HINT = 'Give a longer max_age.';
    ELSIF n.left_out > 0 THEN
      RAISE WARNING 'these promises need % requests a minute, % can be had for them: % of % are not kept',
        ceil(c.requests * greatest(n.live / c.live, n.others / c.others)), floor(c.requests), n.left_out, n.promises
      USING DETAIL = format('Refreshes a minute: live-priced SKUs need %s of %s, others %s of %s.', ceil(n.live), floor(c.live), ceil(n.others), floor(c.others)),
        HINT = 'Promises of the greatest weight are kept first, and among equal ones those of the greatest max_age; catalog.promises says which. Give a longer max_age, or to fewer SKUs.';
    END IF;
  END IF;
  PERFORM set_config('catalog_internal.promised', concat_ws(' ', apart::text, weighed_at, round(n.live::numeric, 6), round(n.others::numeric, 6)), false);
  IF c.hindered IS NOT NULL THEN
    RAISE WARNING 'no promise is kept at present: requests are %', CASE c.hindered WHEN 'calls are failing' THEN 'failing' ELSE c.hindered END;
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.warn_of_promises() FROM PUBLIC;
--> statement-breakpoint
-- Seconds of work at the present pace ahead of a refresh that is due now: by the number of its lane, and at the place
-- after the last lane for one that counts as live. As if everything that is at least as urgent went first. Null where
-- the backlog was not counted in the last five minutes; for a live one also where nobody knows when its turn is (live_ahead).
CREATE OR REPLACE FUNCTION catalog_internal.seconds_ahead() RETURNS float8[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  p catalog_internal.pace;
  per_minute real;
  backlog jsonb;
  cheap_per_second float8;
  live_per_second float8;
  lanes CONSTANT integer := cardinality(catalog_internal.lane_names());
BEGIN
  SELECT counts -> 'due' INTO backlog FROM catalog_internal.catalog_counts WHERE counted_at > clock_timestamp() - interval '5 minutes';
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  per_minute := catalog_internal.present_ceiling(p);
  cheap_per_second := g.bulk_max_skus * per_minute / 60;
  live_per_second := least(catalog_internal.live_rate(),
    coalesce((SELECT live_budget FROM catalog_internal.sync), g.bulk_live_budget) * per_minute) / 60;
  RETURN (
    WITH owed AS MATERIALIZED (
      SELECT r ->> 'reason' AS reason, (r ->> 'count')::float8 AS skus FROM jsonb_array_elements(backlog) AS r
    )
    SELECT array_agg(CASE WHEN lane <= lanes OR catalog_internal.live_ahead() IS NOT NULL THEN coalesce(CASE
               WHEN lane <= lanes THEN (SELECT sum(skus) FROM owed WHERE reason NOT IN ('live', 'deferred') AND catalog_internal.lane_of(reason) <= lane)
               ELSE (SELECT sum(skus) FROM owed WHERE reason IN ('live', 'deferred'))
             END, 0) / nullif(CASE WHEN lane <= lanes THEN cheap_per_second ELSE live_per_second END, 0) END ORDER BY lane)
    FROM generate_series(1, lanes + 1) AS lane WHERE backlog IS NOT NULL
  );
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.seconds_ahead() TO PUBLIC;
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
      'last_day', 'live_ahead', 'moment', 'p_right', 'pause_holds', 'present_ceiling', 'price_beliefs', 'promise_capacity', 'seconds_ahead', 'trust_now', 'trust_terms')
    AND NOT EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)
  UNION ALL
  SELECT format('ALTER DEFAULT PRIVILEGES IN SCHEMA catalog GRANT SELECT ON TABLES TO %I', role) FROM roles
  WHERE role = 'catalog_reader' AND NOT EXISTS (
    SELECT FROM pg_default_acl, aclexplode(defaclacl)
    WHERE defaclnamespace = 'catalog'::regnamespace AND defaclobjtype = 'r' AND grantee = to_regrole(role) AND privilege_type = 'SELECT'
  )
$$;

REVOKE ALL ON FUNCTION catalog_internal.missing_rights() FROM PUBLIC;
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
            WHEN d.claim IS NOT NULL AND d.held_until > t.moment THEN greatest(t.moment, t.backoff_until)
            WHEN d.live AND (NOT k.owed OR d.held_until > t.moment) THEN (
              -- It keeps its place while it waits. One evaluation of what is ahead.
              SELECT CASE WHEN q.ahead IS NULL THEN NULL
                          WHEN NOT k.owed THEN greatest(least(d.due_at + q.ahead, CASE WHEN d.promised_at > t.moment THEN d.promised_at WHEN d.promised_at <= t.moment THEN t.moment END), d.held_until, t.backoff_until)
                          ELSE greatest(d.held_until, t.backoff_until, t.moment + q.ahead)
                     END
              FROM (SELECT (SELECT catalog_internal.live_ahead()) AS ahead OFFSET 0) q
            )
            WHEN NOT k.owed THEN greatest(least(d.due_at, CASE WHEN d.promised_at > t.moment THEN d.promised_at WHEN d.promised_at <= t.moment THEN t.moment END), d.held_until, t.backoff_until)
            WHEN d.held_until > t.moment THEN greatest(d.held_until, t.backoff_until)
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
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, for a live one, where the partner computes only so many, and the turn after that, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused or paused without an end, nothing counted within five minutes, or, for a live one, no live price computed for half an hour.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced and in scope, at a time that can be believed, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: out_of_scope (catalog.scope says that it is not priced, so its prices only get older); pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); implausible (the partner says it, but it is hardly a price: catalog.explain says why), mass-move (prices of many SKUs have moved implausibly), both until a second answer, five minutes later or more, says the same; owed (a re-price: see owed_reason; the next turn of a live SKU is none, unless it was reported since it was asked; nor is anything known to be due of a SKU whose row of the ledger somebody has deleted, until it is made anew); past_target (too old: beyond target_age, and for a live SKU in its turns beyond LIVE_INTERVAL and the longest wait that is planned); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where its prices may be acted on: doubt is null, and p_right is ACTIONABLE_CONFIDENCE at least. A size without a readable price is no price all the same.';
COMMENT ON COLUMN catalog.sku_trust.p_right IS 'Probability that the partner, asked now, would answer every price of this SKU as it is here; null where it has none, or nobody knows when it was answered (doubt is clock). catalog.calibration says how well that has held.';
COMMENT ON COLUMN catalog.sku_trust.size_p_right IS 'The same for one of its sizes: when a SKU moves, not all of its sizes do.';
COMMENT ON COLUMN catalog.sku_trust.size_actionable IS 'The same as actionable for one of its sizes: doubt is null, and size_p_right is ACTIONABLE_CONFIDENCE at least.';
