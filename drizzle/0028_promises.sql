CREATE TABLE "catalog_internal"."promise_cases" (
	"sku" text COLLATE "C" PRIMARY KEY NOT NULL,
	"hour" timestamp with time zone NOT NULL,
	"cases" integer[] NOT NULL,
	"kept" integer[] NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."promising" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"promises" integer DEFAULT 0 NOT NULL,
	"feasible" integer DEFAULT 0 NOT NULL,
	"needed" double precision DEFAULT 0 NOT NULL,
	"available" double precision DEFAULT 0 NOT NULL,
	"cases" bigint DEFAULT 0 NOT NULL,
	"kept" bigint DEFAULT 0 NOT NULL,
	"hindered_at" timestamp with time zone,
	"hindered_by" text,
	CONSTRAINT "promising_one_row" CHECK ("catalog_internal"."promising"."id")
);
--> statement-breakpoint
ALTER TABLE "catalog"."watchlist" ADD COLUMN "max_age" interval;--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "promised_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "promised_by" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog_internal"."watched" ADD COLUMN "max_age" double precision;--> statement-breakpoint
ALTER TABLE "catalog_internal"."watched" ADD COLUMN "promised_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog_internal"."watched" ADD COLUMN "feasible" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "due_promised" ON "catalog_internal"."due" USING btree ("live","promised_by") WHERE held_until is null and largest_call is null and promised_by is not null;--> statement-breakpoint
CREATE INDEX "watched_promised" ON "catalog_internal"."watched" USING btree ("sku") WHERE "catalog_internal"."watched"."max_age" is not null;--> statement-breakpoint
ALTER TABLE "catalog"."watchlist" ADD CONSTRAINT "max_age_is_30_seconds_to_365_days" CHECK ("catalog"."watchlist"."max_age" >= interval '30 seconds' and "catalog"."watchlist"."max_age" <= interval '365 days');--> statement-breakpoint
INSERT INTO catalog_internal.promising DEFAULT VALUES;
--> statement-breakpoint
ALTER TABLE catalog_internal.promise_cases SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE catalog_internal.promising SET (fillfactor = 10);
--> statement-breakpoint
COMMENT ON COLUMN catalog.watchlist.max_age IS 'A promise: the SKU is asked for again before its price is older than that, 30 seconds to 365 days. Null: none. A warning says at once what cannot be kept, catalog.promises what became of it.';
COMMENT ON TABLE catalog_internal.promise_cases IS 'How often each promise of a price''s age was kept in each of the last 24 hours (catalog.promises).';
COMMENT ON TABLE catalog_internal.promising IS 'One row: what all promises need and how many of them are kept, as weighed last.';
--> statement-breakpoint
-- So many seconds after a SKU was asked it comes first again, where its price is to get no older than `max_age` seconds: earlier by what the wait for
-- its call, the answer, and a restart may take. The one place that knows how early. A single expression, so that the planner puts it in place of the call.
CREATE OR REPLACE FUNCTION catalog_internal.promised_interval(max_age double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT max_age - greatest(8, least(45, max_age / 5));
END;

REVOKE ALL ON FUNCTION catalog_internal.promised_interval(double precision) FROM PUBLIC;
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
    WHEN EXISTS (SELECT FROM catalog_internal.pause WHERE resumed_by IS NULL AND until > clock_timestamp()) THEN 'paused'
    WHEN p.backoff_until IS NOT NULL THEN 'backing off after a refusal'
    WHEN EXISTS (SELECT FROM catalog_internal.tasks WHERE task = 'reprice' AND failures > 0 AND next_at > clock_timestamp()) THEN 'calls are failing'
  END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.promise_capacity() TO PUBLIC;
--> statement-breakpoint
-- Which promises the account can keep, the one place that decides it: in order of weight, and among equal ones those first that ask for the least, until
-- what there is for promises is used up. All of them kept in turn would each be late as soon as they are too many together. `demand` is in
-- refreshes a minute. SKUs that are not found or removed have no price that could get old: they ask for nothing and are left out.
CREATE OR REPLACE FUNCTION catalog_internal.promises_that_fit(skus text[], max_ages double precision[], weights real[])
RETURNS TABLE (sku text, live boolean, demand double precision, fits boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT n.sku, n.live, n.demand,
         sum(n.demand) OVER (PARTITION BY n.live ORDER BY n.weight DESC, n.demand, n.sku COLLATE "C") <= CASE WHEN n.live THEN c.live ELSE c.others END
  FROM catalog_internal.promise_capacity() c
  CROSS JOIN LATERAL (
    SELECT a.sku, a.weight, 60 / catalog_internal.promised_interval(a.max_age) AS demand, coalesce(d.live OR c.incident, false) AS live
    FROM unnest(skus, max_ages, weights) AS a(sku, max_age, weight)
    LEFT JOIN catalog.skus s ON s.sku = a.sku LEFT JOIN catalog_internal.due d ON d.sku = a.sku
    WHERE coalesce(s.state IN ('pending', 'priced'), true)
  ) n;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.promises_that_fit(text[], double precision[], real[]) FROM PUBLIC;
--> statement-breakpoint
-- What a ring of hours has counted in the last day: its first hour is the one that began at `hour`, as it was written last.
CREATE OR REPLACE FUNCTION catalog_internal.last_day(ring integer[], hour timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(sum(n), 0)::bigint FROM unnest(ring) WITH ORDINALITY AS r(n, place)
  WHERE place <= 24 - floor(extract(epoch FROM now() - hour) / 3600);
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.last_day(integer[], timestamptz) TO PUBLIC;
--> statement-breakpoint
-- A ring of hours, so many hours later, with so many more in the present one: 24 at most.
CREATE OR REPLACE FUNCTION catalog_internal.counted(ring integer[], hours integer, more integer) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT array_append('{}'::integer[], turned[1] + more) || turned[2:24]
  FROM (SELECT array_fill(0, ARRAY[least(24, greatest(0, hours))]) || ring AS turned) t;
END;

REVOKE ALL ON FUNCTION catalog_internal.counted(integer[], integer, integer) FROM PUBLIC;
--> statement-breakpoint
-- Decides anew which promises are kept, and notes what all of them need, how many were kept in the last day, and what hinders them. What has turned
-- the ledger is told by watched_to_ledger. Called with the row of `watching` locked, each minute and when the watchlist was changed.
CREATE OR REPLACE FUNCTION catalog_internal.weigh_promises() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  c record;
BEGIN
  IF NOT EXISTS (SELECT FROM catalog_internal.watched WHERE max_age IS NOT NULL)
     AND NOT EXISTS (SELECT FROM catalog_internal.promising WHERE promises > 0) THEN
    RETURN;
  END IF;
  SELECT * INTO c FROM catalog_internal.promise_capacity();
  WITH promised AS MATERIALIZED (
    SELECT sku, max_age, weight, feasible FROM catalog_internal.watched WHERE max_age IS NOT NULL
  ), fitting AS MATERIALIZED (
    SELECT f.* FROM (SELECT array_agg(sku) AS skus, array_agg(max_age) AS ages, array_agg(weight) AS weights FROM promised) a
    CROSS JOIN LATERAL catalog_internal.promises_that_fit(a.skus, a.ages, a.weights) f
  ), turned AS (
    UPDATE catalog_internal.watched w SET feasible = NOT w.feasible, pending = coalesce(w.pending, 'rank'),
      -- It counts from when it can be kept.
      promised_since = CASE WHEN w.feasible THEN w.promised_since ELSE clock_timestamp() END
    FROM promised p LEFT JOIN fitting f ON f.sku = p.sku
    WHERE w.sku = p.sku AND p.feasible <> coalesce(f.fits, false)
  ), needed AS (
    SELECT coalesce(sum(demand) FILTER (WHERE live), 0) AS live, coalesce(sum(demand) FILTER (WHERE NOT live), 0) AS others, count(*) FILTER (WHERE fits) AS fitting
    FROM fitting
  ), day AS (
    SELECT coalesce(sum(catalog_internal.last_day(k.cases, k.hour)), 0) AS cases, coalesce(sum(catalog_internal.last_day(k.kept, k.hour)), 0) AS kept
    FROM catalog_internal.promise_cases k
  )
  UPDATE catalog_internal.promising SET promises = (SELECT count(*) FROM promised), feasible = n.fitting,
    needed = c.requests * greatest(n.live / c.live, n.others / c.others), available = c.requests, cases = day.cases, kept = day.kept,
    hindered_at = CASE WHEN c.hindered IS NULL THEN hindered_at ELSE clock_timestamp() END, hindered_by = coalesce(c.hindered, hindered_by)
  FROM needed n, day;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.weigh_promises() FROM PUBLIC;
--> statement-breakpoint
-- Says at once to whoever asks for a promise that the account cannot keep: the statement's own rows count, and those of nobody else's open transaction.
-- It writes nothing and waits for nobody but a migration. SECURITY DEFINER, because catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.warn_of_promises() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
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
  FROM (SELECT array_agg(sku) AS skus, array_agg(extract(epoch FROM max_age)::double precision) AS ages, array_agg(weight) AS weights FROM catalog.watchlist WHERE max_age IS NOT NULL) a
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

CREATE OR REPLACE TRIGGER warn_of_promises AFTER INSERT ON catalog.watchlist
REFERENCING NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.warn_of_promises();
CREATE OR REPLACE TRIGGER warn_of_changed_promises AFTER UPDATE ON catalog.watchlist
REFERENCING NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.warn_of_promises();

-- Also where rows are put in as a replica does (session_replication_role): the server's log has it then.
ALTER TABLE catalog.watchlist ENABLE ALWAYS TRIGGER warn_of_promises, ENABLE ALWAYS TRIGGER warn_of_changed_promises;
--> statement-breakpoint
-- Records what else may happen to the watchlist, as watch_added does for an INSERT. An UPDATE that changes the sku is
-- a DELETE of one row and an INSERT of another.
CREATE OR REPLACE FUNCTION catalog_internal.watch_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    INSERT INTO catalog_internal.watch_changes (added, skus)
    SELECT before.sku IS NULL, array_agg(sku)
    FROM was before FULL JOIN becomes after USING (sku)
    WHERE before.weight IS DISTINCT FROM after.weight OR before.max_age IS DISTINCT FROM after.max_age
    GROUP BY before.sku IS NULL;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO catalog_internal.watch_changes (added, skus)
    SELECT false, array_agg(sku) FROM was HAVING count(*) > 0;
  ELSE
    INSERT INTO catalog_internal.watch_changes (added) VALUES (false);
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watch_changed() FROM PUBLIC;

CREATE OR REPLACE TRIGGER watch_updated AFTER UPDATE ON catalog.watchlist
REFERENCING OLD TABLE AS was NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
CREATE OR REPLACE TRIGGER watch_deleted AFTER DELETE ON catalog.watchlist
REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
CREATE OR REPLACE TRIGGER watch_emptied AFTER TRUNCATE ON catalog.watchlist
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog.watchlist ENABLE ALWAYS TRIGGER watch_updated, ENABLE ALWAYS TRIGGER watch_deleted, ENABLE ALWAYS TRIGGER watch_emptied;
--> statement-breakpoint
-- Copies into `watched` what changed in catalog.watchlist since it was last read: what sellers' statements recorded, or, with
-- `everything`, all that differs, as rows do that came by replication and fired no trigger. At most `most` SKUs are watched;
-- those of the greatest weights come first, and others once there is room. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each.
CREATE OR REPLACE FUNCTION catalog_internal.read_watchlist(everything boolean, most integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  WITH taken AS (
    DELETE FROM catalog_internal.watch_changes RETURNING added, skus
  ), named AS (
    SELECT sku, bool_or(added) AS added FROM (
      SELECT unnest(skus) AS sku, added FROM taken
      UNION ALL SELECT sku, false FROM catalog_internal.watched WHERE everything OR EXISTS (SELECT FROM taken WHERE skus IS NULL)
      UNION ALL SELECT sku, false FROM catalog.watchlist WHERE everything
    ) n GROUP BY sku
  ), present AS MATERIALIZED (
    SELECT n.sku, w.weight, o.weight AS was, n.added OR o.weight IS NULL AS is_new, extract(epoch FROM w.max_age)::double precision AS max_age
    FROM named n LEFT JOIN catalog.watchlist w ON w.sku = n.sku LEFT JOIN catalog_internal.watched o ON o.sku = n.sku
    WHERE w.weight IS DISTINCT FROM o.weight OR extract(epoch FROM w.max_age)::double precision IS DISTINCT FROM o.max_age OR (n.added AND w.weight IS NOT NULL)
  ), room AS (
    SELECT most - count(weight) + (SELECT count(*) FROM present WHERE weight IS NULL) AS skus FROM catalog_internal.watched
  )
  INSERT INTO catalog_internal.watched AS o (sku, weight, pending, max_age, promised_since)
  SELECT sku, weight, CASE WHEN is_new AND weight IS NOT NULL THEN 'mark' ELSE 'rank' END, max_age, CASE WHEN max_age IS NOT NULL THEN clock_timestamp() END
  FROM (SELECT *, row_number() OVER (PARTITION BY was IS NULL ORDER BY weight DESC, sku) AS place FROM present) p, room
  WHERE was IS NOT NULL OR place <= room.skus
  ON CONFLICT (sku) DO UPDATE SET weight = excluded.weight,
    pending = CASE WHEN o.pending = 'mark' AND excluded.weight IS NOT NULL THEN 'mark' ELSE excluded.pending END,
    max_age = excluded.max_age, feasible = o.feasible AND excluded.max_age IS NOT NULL,
    promised_since = CASE WHEN excluded.max_age IS NOT DISTINCT FROM o.max_age THEN o.promised_since ELSE excluded.promised_since END;
  PERFORM catalog_internal.weigh_promises();
  IF everything THEN
    -- Watched, but deleted from the mirror by somebody.
    UPDATE catalog_internal.watched o SET pending = 'mark'
    WHERE weight IS NOT NULL AND pending IS DISTINCT FROM 'mark' AND NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = o.sku);
    -- Deleted like that and back since, the ledger knows nothing of its promise.
    UPDATE catalog_internal.watched o SET pending = 'rank'
    FROM catalog.skus s JOIN catalog_internal.due d ON d.sku = s.sku
    WHERE o.max_age IS NOT NULL AND o.feasible AND o.pending IS NULL AND s.sku = o.sku AND s.state IN ('pending', 'priced') AND d.promised_at IS NULL;
    UPDATE catalog_internal.watching SET left_out = l.skus
    FROM (SELECT count(*) AS skus FROM catalog.watchlist w WHERE NOT EXISTS (SELECT FROM catalog_internal.watched o WHERE o.sku = w.sku)) l
    WHERE left_out <> l.skus;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.read_watchlist(boolean, integer) FROM PUBLIC;
--> statement-breakpoint
-- Tells the ledger of `most` SKUs what is pending of `watched`, and whether there is more. A SKU that is watched anew is
-- marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that is watched no longer, is not marked
-- for that; it gets its new rank at once where it is urgent, and with its next mark elsewhere. A promise of its age holds from here on: one that was
-- never asked for is to be at once.
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
  -- Answers that were applied meanwhile are seen, because their rows are locked.
  UPDATE catalog_internal.due d SET promised_at = n.promised_at,
    -- One that is late from the beginning is no more urgent than one that was kept until now.
    promised_by = CASE WHEN n.promised_at IS NOT NULL THEN greatest(n.promised_at, n.promised_since) + (n.max_age - n.every) END
  FROM (
    SELECT w.sku, w.promised_since, make_interval(secs => w.max_age) AS max_age, i.every, CASE
      WHEN NOT w.feasible OR w.max_age IS NULL THEN NULL
      WHEN s.state = 'pending' THEN w.promised_since
      ELSE s.asked_at + i.every
    END AS promised_at
    FROM catalog_internal.watched w JOIN catalog.skus s ON s.sku = w.sku
    CROSS JOIN LATERAL (SELECT make_interval(secs => catalog_internal.promised_interval(w.max_age)) AS every) i
    WHERE w.sku = ANY (told)
  ) n
  WHERE d.sku = n.sku AND (d.promised_at IS NOT NULL OR n.promised_at IS NOT NULL);
  DELETE FROM catalog_internal.promise_cases p USING catalog_internal.watched w
  WHERE w.sku = ANY (told) AND w.max_age IS NULL AND p.sku = w.sku;
  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;
  UPDATE catalog_internal.watched SET pending = NULL WHERE sku = ANY (told);
  RETURN cardinality(told) = most;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watched_to_ledger(integer) FROM PUBLIC;
--> statement-breakpoint
-- Puts right what a clock that was ahead has written into the ledger, of at most so many SKUs after the SKU named. A mark makes its SKU due at
-- once, so no mark is to come; what waits, and what was planned by that clock for an answer of before, comes earlier by as much as it was
-- ahead. Returns the last of these SKUs, null: there are no more.
CREATE OR REPLACE FUNCTION catalog_internal.redate_due(shift interval, after text, most integer) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
  -- Lanes of SKUs that are asked by a plan. Of the others each has been marked.
  planned smallint[] := ARRAY[catalog_internal.lane_of('live'), catalog_internal.lane_of('metadata'), catalog_internal.lane_of('sweep')];
  -- Less is not worth it to write so many rows: a price that gets older meanwhile says so.
  worthwhile boolean[] := ARRAY[shift > interval '10 minutes', shift > interval '1 day', shift > interval '1 day'];
  last text;
BEGIN
  WITH ahead AS MATERIALIZED (
    SELECT d.sku, misplanned FROM catalog_internal.due d
    CROSS JOIN LATERAL (
      SELECT due_at > moment AND due_at < 'infinity' AND worthwhile[array_position(planned, lane)]
        AND due_at > (SELECT coalesce(s.asked_at, s.first_seen_at) + shift FROM catalog.skus s WHERE s.sku = d.sku) AS misplanned
    ) p
    WHERE d.sku > after AND (
      held_until > moment OR promised_by > moment OR misplanned OR due_at > moment AND due_at < 'infinity' AND lane <> ALL (planned)
    )
    ORDER BY d.sku LIMIT most FOR UPDATE OF d
  ),
  redated AS (
    UPDATE catalog_internal.due d SET held_until = catalog_internal.awaited(d.held_until, moment, shift),
      promised_at = catalog_internal.awaited(d.promised_at, moment, shift), promised_by = catalog_internal.awaited(d.promised_by, moment, shift),
      due_at = CASE
        WHEN a.misplanned THEN catalog_internal.awaited(d.due_at, moment, shift)
        WHEN d.lane = ANY (planned) OR d.due_at = 'infinity' THEN d.due_at
        ELSE least(d.due_at, moment)
      END
    FROM ahead a WHERE d.sku = a.sku
  )
  SELECT max(sku) FROM ahead INTO last;
  RETURN last;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.redate_due(interval, text, integer) FROM PUBLIC;
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
  -- As long as it was asked for, and no longer; one of before the clock was ahead keeps its end.
  UPDATE catalog_internal.pause SET
    until = CASE WHEN until < 'infinity' THEN catalog_internal.happened(set_at, moment, shift) + (until - set_at) ELSE until END,
    set_at = catalog_internal.happened(set_at, moment, shift), since = catalog_internal.happened(since, moment, shift)
  WHERE set_at > moment;
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
    incident_tried_at = catalog_internal.happened(incident_tried_at, moment, shift),
    refreshed_at = catalog_internal.happened(refreshed_at, moment, shift);
  UPDATE catalog_internal.live_ceiling SET since = catalog_internal.happened(since, moment, shift),
    blocked_at = catalog_internal.happened(blocked_at, moment, shift),
    failed_at = catalog_internal.happened(failed_at, moment, shift),
    cycle_from = catalog_internal.happened(cycle_from, moment, shift),
    credit_from = catalog_internal.happened(credit_from, moment, shift);
  -- Calls that store a line, or count a release, are not waited for: what they date is taken for new (src/sync/live/releases.ts).
  UPDATE catalog_internal.live_lines SET weighed_at = catalog_internal.happened(weighed_at, moment, shift),
    since = catalog_internal.happened(since, moment, shift)
  WHERE ctid = ANY (ARRAY(SELECT ctid FROM catalog_internal.live_lines WHERE weighed_at > moment OR since > moment FOR UPDATE SKIP LOCKED));
  UPDATE catalog_internal.releases SET early_at = catalog_internal.happened(early_at, moment, shift)
  WHERE id IN (SELECT id FROM catalog_internal.releases WHERE early_at > moment FOR UPDATE SKIP LOCKED);
  -- Nor is whoever reads hints, or keeps them locked; a hint that is dated ahead is one since the last refresh.
  IF catalog_internal.lock_hint_sources() THEN
    UPDATE catalog_internal.hints SET hinted_at = catalog_internal.happened(hinted_at, moment, shift)
    WHERE id IN (SELECT id FROM catalog_internal.hints WHERE hinted_at > moment FOR UPDATE SKIP LOCKED);
    UPDATE catalog_internal.waiting_hints SET hinted_at = catalog_internal.happened(hinted_at, moment, shift)
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM catalog_internal.waiting_hints WHERE hinted_at > moment FOR UPDATE SKIP LOCKED));
    UPDATE catalog_internal.hint_sources SET last_hint = catalog_internal.happened(last_hint, moment, shift)
    WHERE source IN (SELECT source FROM catalog_internal.hint_sources WHERE last_hint > moment FOR UPDATE SKIP LOCKED);
  END IF;
  -- An answer is not waited for either: a count that stays dated ahead goes on in its hour.
  UPDATE catalog_internal.promise_cases SET hour = catalog_internal.happened(hour, moment, shift)
  WHERE sku IN (SELECT sku FROM catalog_internal.promise_cases WHERE hour > moment FOR UPDATE SKIP LOCKED);
  UPDATE catalog_internal.watched SET promised_since = catalog_internal.happened(promised_since, moment, shift)
  WHERE sku IN (SELECT sku FROM catalog_internal.watched WHERE promised_since > moment FOR UPDATE SKIP LOCKED);
  UPDATE catalog_internal.promising SET hindered_at = catalog_internal.happened(hindered_at, moment, shift)
  WHERE id IN (SELECT id FROM catalog_internal.promising WHERE hindered_at > moment FOR UPDATE SKIP LOCKED);
  UPDATE catalog_internal.live_calls SET called_at = catalog_internal.happened(called_at, moment, shift) WHERE called_at > moment;
  UPDATE catalog_internal.unreported_moves SET seen_at = catalog_internal.happened(seen_at, moment, shift),
    reported_at = catalog_internal.happened(reported_at, moment, shift)
  WHERE seen_at > moment OR reported_at > moment;
  UPDATE catalog_internal.mass_move SET since = catalog_internal.happened(since, moment, shift) WHERE since > moment;
  UPDATE catalog_internal.delta_audit SET since = catalog_internal.happened(since, moment, shift);
  UPDATE catalog_internal.quarantine SET seen_at = catalog_internal.happened(seen_at, moment, shift) WHERE seen_at > moment;
  -- Tests of prices whose age that clock told, and draws that it has dated.
  DELETE FROM catalog_internal.calibration_hours WHERE hour > moment;
  DELETE FROM catalog_internal.random_looks WHERE look_at > moment;
  DELETE FROM catalog_internal.live_backlog WHERE listed_at > moment;
  -- The next reader of the status counts anew.
  DELETE FROM catalog_internal.catalog_counts WHERE counted_at > moment;
  RETURN extract(epoch FROM shift);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.set_back_clock() FROM PUBLIC;
--> statement-breakpoint
-- What goes with rows of catalog.skus, whoever deletes them: the ledger, prices with a line in their history, products, rates, draws, hints, requests, kept promises. A trigger
-- and no foreign keys: these would check each row that a baseline or an answer inserts, and lock its SKU for it. The
-- ledger is locked in order of sku, as everyone locks it; history is written last.
CREATE OR REPLACE FUNCTION catalog_internal.forget_with_skus() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    TRUNCATE catalog_internal.due, catalog_internal.unreported_moves, catalog_internal.live_rates, catalog_internal.random_looks, catalog_internal.live_backlog, catalog_internal.hints, catalog_internal.waiting_hints, catalog_internal.refresh_requests, catalog_internal.promise_cases, catalog.products, catalog.prices;
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
  DELETE FROM catalog_internal.promise_cases USING gone WHERE promise_cases.sku = gone.sku;
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

CREATE OR REPLACE TRIGGER forget_with_skus AFTER DELETE ON catalog.skus REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.forget_with_skus();
CREATE OR REPLACE TRIGGER forget_all AFTER TRUNCATE ON catalog.skus
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.forget_with_skus();

-- Also where rows are deleted as a replica does (session_replication_role).
ALTER TABLE catalog.skus ENABLE ALWAYS TRIGGER forget_with_skus;
ALTER TABLE catalog.skus ENABLE ALWAYS TRIGGER forget_all;
--> statement-breakpoint
-- Each promise of a price's age, and what becomes of it. Which of them fit is weighed once a minute and after each change (weigh_promises).
CREATE OR REPLACE VIEW catalog.promises AS
SELECT l.sku, l.max_age,
       k.is_read AND w.feasible AND c.hindered IS NULL AS feasible,
       -- What is late at this moment, and would be a case with its answer, counts as broken.
       (catalog_internal.last_day(p.kept, p.hour) / nullif(catalog_internal.last_day(p.cases, p.hour) + coalesce(o.cases, 0), 0)::double precision)::real AS kept_share,
       CASE
         WHEN NOT k.is_read THEN 'not read by the mirror yet'
         WHEN s.state = 'removed' THEN 'removed'
         WHEN s.state = 'not_found' THEN 'not found'
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
    THEN floor(extract(epoch FROM now() - greatest(s.priced_at, w.promised_since)) / w.max_age) END AS cases
) o
WHERE l.max_age IS NOT NULL;

COMMENT ON VIEW catalog.promises IS 'Promises that you ask for in catalog.watchlist.max_age: whether each can be kept, how often it was, and what speaks against it.';
COMMENT ON COLUMN catalog.promises.sku IS 'As catalog.watchlist has it.';
COMMENT ON COLUMN catalog.promises.max_age IS 'The SKU is asked for again before its price is older than that.';
COMMENT ON COLUMN catalog.promises.feasible IS 'Whether it can be kept at present. Where not all can, those of the greatest weight are, and among equal ones those of the greatest max_age; any other SKU is refreshed as if nothing were promised.';
COMMENT ON COLUMN catalog.promises.kept_share IS 'The part of the refreshes of the last day that were committed before the price was older than max_age; one that came after n times max_age counts as n that did not. Null: there was none yet.';
COMMENT ON COLUMN catalog.promises.because IS 'What speaks against it at present: not read by the mirror yet (nor where WATCHLIST_MAX_SKUS leaves it out), removed, not found, the account cannot, paused, backing off after a refusal, calls are failing, not priced yet, deferred by the partner, calls with it fail, waits for a second answer, late; null: nothing.';
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
            WHEN NOT k.owed THEN greatest(least(d.due_at, CASE WHEN d.promised_at > now() THEN d.promised_at WHEN d.promised_at <= now() THEN now() END), d.held_until, t.backoff_until)
            WHEN d.held_until > now() THEN greatest(CASE WHEN d.claim IS NULL THEN d.held_until ELSE now() END, t.backoff_until)
            ELSE greatest(now(), t.backoff_until)
                   + make_interval(secs => (SELECT catalog_internal.seconds_ahead())[CASE WHEN d.live THEN cardinality(catalog_internal.lane_names()) + 1 ELSE d.lane END])
       END AS next_look_at,
       b.stale,
       s.state = 'priced' AND s.priced_at <= u.believable_until AND NOT b.stale AND NOT b.past_target AS fresh,
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
           WHEN d.doubt IS NOT NULL THEN d.doubt
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
  SELECT s.state = 'priced' AND s.priced_at <= u.believable_until AS has_age,
         greatest(0, date_part('epoch', now() - s.priced_at) / 60) AS minutes,
         s.price_source IS NOT DISTINCT FROM 'live' OR NOT s.in_manifest OR coalesce(d.live, false) AS by_rate,
         coalesce(d.due_at <= now() AND d.reason = 'changed', false) AS reported
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
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a refresh is due: new, changed, live, unlisted (not in_manifest), sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command), doubted (to be answered a second time), clock (asked while the clock of Postgres was ahead); null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the due refresh is served: changed (urgent: also watched, refresh and doubted), live (also unlisted), new (also clock), deferred or error (waits, or has waited), metadata, sweep; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the refresh is due; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, its answer could not be read, or a call with this SKU alone failed.';
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused or paused without an end, or nothing counted within five minutes.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced, at a time that can be believed, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); implausible (the partner says it, but it is hardly a price: catalog.explain says why), mass-move (prices of many SKUs have moved implausibly), both until a second answer, five minutes later or more, says the same; owed (a re-price: see owed_reason; the next turn of a live SKU is none); past_target (too old: beyond target_age, and for a live SKU in its turns beyond LIVE_INTERVAL and the longest wait that is planned); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where its prices may be acted on: doubt is null, and p_right is ACTIONABLE_CONFIDENCE at least. A size without a readable price is no price all the same.';
COMMENT ON COLUMN catalog.sku_trust.p_right IS 'Probability that the partner, asked now, would answer every price of this SKU as it is here; null where it has none, or nobody knows when it was answered (doubt is clock). catalog.calibration says how well that has held.';
COMMENT ON COLUMN catalog.sku_trust.size_p_right IS 'The same for one of its sizes: when a SKU moves, not all of its sizes do.';
COMMENT ON COLUMN catalog.sku_trust.size_actionable IS 'The same as actionable for one of its sizes: doubt is null, and size_p_right is ACTIONABLE_CONFIDENCE at least.';
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
      'doubted', CASE WHEN d.doubt IS NOT NULL THEN jsonb_build_object('oddity', d.oddity, 'since', d.doubted_at, 'before', d.believed) END,
      'stale', t.stale, 'past_target', t.past_target, 'target_seconds', extract(epoch FROM t.target_age)::float8
    ),
    'belief', jsonb_build_object(
      'cohort', c.cohort,
      'minutes_between_changes', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.beta, 120) + least(120, coalesce(l.beta, 120)) * (e.live_prior_minutes / 120 - 1)) / coalesce(l.alpha, 1) END,
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
    SELECT catalog_internal.cohort_of(s.price_source, s.in_manifest, coalesce(d.live, false), t.owed AND d.reason = 'changed') AS cohort
  ) c
  LEFT JOIN LATERAL (
    SELECT sum(looks)::bigint AS looks, sum(looks * right_share) / nullif(sum(looks), 0) AS right_share,
           sum(looks * claimed_share) / nullif(sum(looks), 0) AS claimed_share
    FROM catalog.calibration WHERE cohort = c.cohort
  ) k ON true
  WHERE s.sku = of_sku
$$;

REVOKE ALL ON FUNCTION catalog.explain(text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.explain(text) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.explain(text) IS 'Where each number of a SKU comes from, as JSON: the answer, and why it was asked for; the report of the delta; how likely the prices are right, and what speaks against them; what is believed of its changes; the next refresh; each size with the price before. Null: the SKU is not known.';
