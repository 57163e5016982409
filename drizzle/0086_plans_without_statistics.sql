-- Plans do not go by what Postgres believes of the number of rows: a list that was analyzed while it was empty, or with
-- a few rows on many pages, was read as a whole for each of thousands of SKUs.
-- Writes how SKUs differ from what they were (null: they were not there), and returns how many do. Last in
-- its transaction, as every writer of changes.
CREATE OR REPLACE FUNCTION catalog_internal.add_sku_changes(skus text[], states text[], price_sources text[], listed boolean[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  changed bigint;
BEGIN
  SELECT sum(cardinality(g.skus)) INTO changed
  FROM (
    SELECT array_agg(d.sku ORDER BY d.sku) AS skus, d.fields, d.old_values, d.new_values
    FROM (
      SELECT s.sku, array_agg(f.field ORDER BY f.field DESC) AS fields, array_agg(f.old_value ORDER BY f.field DESC) AS old_values,
        array_agg(f.new_value ORDER BY f.field DESC) AS new_values
      FROM unnest(add_sku_changes.skus, states, price_sources, listed) AS o(sku, state, price_source, in_manifest)
      CROSS JOIN LATERAL (SELECT s.sku, s.state, s.price_source, s.in_manifest FROM catalog.skus s WHERE s.sku = o.sku OFFSET 0) s
      CROSS JOIN LATERAL (VALUES ('state', o.state, s.state), ('price_source', o.price_source, s.price_source),
        ('in_manifest', o.in_manifest::text, s.in_manifest::text)) AS f(field, old_value, new_value)
      WHERE f.old_value IS DISTINCT FROM f.new_value
      GROUP BY s.sku
    ) d
    GROUP BY d.fields, d.old_values, d.new_values
  ) g
  CROSS JOIN LATERAL catalog_internal.add_changes('sku', g.skus, NULL, NULL, g.fields, g.old_values, g.new_values, now());
  RETURN coalesce(changed, 0);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_sku_changes(text[], text[], text[], boolean[]) FROM PUBLIC;
--> statement-breakpoint
-- Sorts SKUs by the rules, and returns how many stand otherwise than before. Call it with their rows of the
-- ledger locked, after all that is written of them. What leaves the scope keeps all that is known of it: in
-- outside_due_at when it would be due, which marks move on; its lane is 0, which nobody claims. What comes
-- into it is due then, or now where that is past: since now it is late. What is asked for its metadata, and
-- was answered without any, waits: for what the price routes do not know as long as in scope; where a record
-- had none, an hour, then as long as it has had none, METADATA_INTERVAL at most. held_until keeps spare slots
-- from asking before. The lock holds back whoever changes the rules until this transaction has ended, so that
-- all SKUs that were sorted by the old ones are seen by the pass that follows (follow_scope). Planned each
-- time: a plan from when there were few rules would read all of them for each SKU.
CREATE OR REPLACE FUNCTION catalog_internal.apply_scope(skus text[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  moved bigint;
BEGIN
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  UPDATE catalog_internal.due d SET
    outside_due_at = CASE WHEN n.standing <> 'in' THEN n.kept END,
    due_at = CASE n.standing WHEN 'out' THEN 'infinity' WHEN 'asked' THEN n.asks_at ELSE greatest(n.kept, now()) END,
    held_until = CASE
      WHEN d.claim IS NOT NULL THEN d.held_until
      WHEN n.standing = 'asked' THEN CASE WHEN n.asks_at > now() THEN greatest(d.held_until, n.asks_at) ELSE d.held_until END
      -- What it has waited for is no longer asked; a second answer counts as soon as it would have.
      WHEN n.was = 'asked' AND d.due_at > now() THEN CASE WHEN d.doubt IS NOT NULL THEN least(d.held_until, d.doubted_at + interval '5 minutes') END
      ELSE d.held_until
    END,
    reason = n.reason,
    lane = CASE
      WHEN n.standing = 'out' THEN 0
      WHEN n.failures > 0 AND n.kept <= now() THEN catalog_internal.lane_of('error')
      ELSE catalog_internal.lane_of(n.reason)
    END,
    -- One that was asked for by name stays ahead of all others.
    rank = CASE WHEN d.rank < 'Infinity' THEN coalesce(n.weight, 1) ELSE d.rank END
  FROM (
    SELECT l.row_at, l.failures, k.kept, t.standing, b.was, w.weight, a.asks_at,
      CASE
        WHEN t.standing = 'asked' THEN 'scope'
        WHEN l.reason <> 'scope' THEN l.reason
        WHEN k.state = 'pending' THEN 'new'
        -- Marked since it was answered.
        WHEN l.generation IS DISTINCT FROM l.asked_generation THEN 'changed'
        WHEN k.state <> 'priced' THEN 'metadata'
        WHEN l.doubt IS NOT NULL THEN 'doubted'
        WHEN l.live THEN 'live'
        WHEN NOT s.in_manifest THEN 'unlisted'
        WHEN g.sweep_interval > 0 AND g.sweep_interval <= g.metadata_interval THEN 'sweep'
        ELSE 'metadata'
      END AS reason
    FROM unnest(apply_scope.skus) AS u(sku)
    CROSS JOIN LATERAL (SELECT d.ctid AS row_at, d.* FROM catalog_internal.due d WHERE d.sku = u.sku OFFSET 0) l
    -- One that the same statement inserts is not to be seen here.
    LEFT JOIN LATERAL (SELECT s.state, s.in_manifest, s.asked_at FROM catalog.skus s WHERE s.sku = u.sku OFFSET 0) s ON true
    LEFT JOIN LATERAL (SELECT p.brand, p.model, p.category, p.changed_at FROM catalog.products p WHERE p.sku = u.sku OFFSET 0) p ON true
    LEFT JOIN LATERAL (SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = u.sku OFFSET 0) w ON true
    CROSS JOIN catalog_internal.settings g
    CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, coalesce(p.brand, p.model, p.category) IS NOT NULL) o
    CROSS JOIN LATERAL (SELECT coalesce(l.outside_due_at, l.due_at) AS kept, coalesce(s.state, 'pending') AS state) k
    CROSS JOIN LATERAL (SELECT catalog_internal.scope_standing(o.place, k.state, l.reason, k.kept) AS standing) t
    CROSS JOIN LATERAL (SELECT CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END AS was) b
    CROSS JOIN LATERAL (
      SELECT greatest(now(), CASE
        WHEN k.state = 'pending' OR l.reason IN ('new', 'changed', 'watched', 'refresh') AND k.kept <= now() THEN now()
        WHEN k.state <> 'priced' THEN k.kept
        ELSE s.asked_at + least(make_interval(secs => g.metadata_interval), greatest(interval '1 hour', s.asked_at - p.changed_at))
      END) AS asks_at
    ) a
    WHERE t.standing <> b.was OFFSET 0
  ) n
  WHERE d.ctid = n.row_at;
  GET DIAGNOSTICS moved = ROW_COUNT;
  RETURN moved;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.apply_scope(text[]) FROM PUBLIC;
--> statement-breakpoint
-- Writes down that a seller asks for SKUs: nothing that the mirror needs is locked, however long the caller's
-- transaction stays open. Those that are known and in scope come back, each with the generation that its mark
-- has before: an answer to a later one was asked for after this. A SKU that somebody has asked for already
-- costs nothing, nor one that the next call has anyway, and is not written down twice unless somebody waits
-- for an answer. Any other costs its part of a call; while calls fail, one call at least, as it has them
-- tried again. Tables of one row are read apart: nothing ever analyzes some of them, so the planner takes them for
-- hundreds of rows each, and joined with these a few SKUs for so many that it reads the whole ledger for them.
-- A SERIALIZABLE caller does not read what others have asked for, and pays for it again: callers who read that
-- and add to it would make each other fail.
CREATE OR REPLACE FUNCTION catalog_internal.ask_refresh(skus text[], waits boolean, OUT known text[], OUT generations integer[], OUT missing text[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' SET enable_seqscan = off SET jit = off AS $$
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
      CASE WHEN apart THEN false ELSE EXISTS (SELECT FROM catalog_internal.refresh_requests r WHERE r.sku = d.sku OFFSET 0) END AS requested,
      d.lane = 1 AND d.due_at <= clock_timestamp() AND d.held_until IS NULL AND d.largest_call IS NULL AS next,
      1 / greatest(1, CASE WHEN d.largest_call IS NOT NULL THEN d.largest_call WHEN d.live OR incident THEN live_at_once ELSE others_at_once END) AS part
    FROM unnest(wanted) AS w(sku)
    CROSS JOIN LATERAL (SELECT d.* FROM catalog_internal.due d WHERE d.sku = w.sku AND d.outside_due_at IS NULL OFFSET 0) d
    WHERE EXISTS (SELECT FROM catalog.skus s WHERE s.sku = w.sku OFFSET 0)
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

REVOKE ALL ON FUNCTION catalog_internal.ask_refresh(text[], boolean) FROM PUBLIC;
--> statement-breakpoint
-- Sorts the next SKUs that are to be sorted, `most` of them, and returns whether there may be more. Those of
-- a pass are compared without a lock, as all that was sorted by other rules is committed (apply_scope), and
-- only those that stand otherwise than they are to are locked, in order of sku, as everyone locks the ledger.
-- Called with the row of `scoping` locked.
CREATE OR REPLACE FUNCTION catalog_internal.follow_scope(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  pass catalog_internal.scope_passes;
  last text;
  is_over boolean;
  piece text[];
BEGIN
  SELECT array_agg(sku) INTO piece FROM (SELECT sku FROM catalog_internal.scope_pending ORDER BY sku LIMIT most) p;
  DELETE FROM catalog_internal.scope_pending WHERE sku = ANY (piece);
  IF piece IS NULL THEN
    SELECT * INTO pass FROM catalog_internal.scope_passes ORDER BY id LIMIT 1;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    SELECT max(n.sku), count(*) < most OR coalesce(bool_or(NOT starts_with(n.sku, pass.prefix)), false),
      array_agg(n.sku) FILTER (WHERE starts_with(n.sku, pass.prefix) AND n.standing <> n.was)
    INTO last, is_over, piece
    FROM (
      SELECT l.sku, catalog_internal.scope_standing(o.place, s.state, l.reason, coalesce(l.outside_due_at, l.due_at)) AS standing,
        CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END AS was
      FROM (SELECT * FROM catalog_internal.due WHERE sku >= pass.from_sku ORDER BY sku LIMIT most) l
      LEFT JOIN LATERAL (SELECT s.state FROM catalog.skus s WHERE s.sku = l.sku OFFSET 0) s ON true
      LEFT JOIN LATERAL (SELECT p.brand, p.model, p.category FROM catalog.products p WHERE p.sku = l.sku OFFSET 0) p ON true
      CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, coalesce(p.brand, p.model, p.category) IS NOT NULL) o
    ) n;
    IF is_over THEN
      DELETE FROM catalog_internal.scope_passes WHERE id = pass.id;
    ELSE
      -- The next one in the order of bytes.
      UPDATE catalog_internal.scope_passes SET from_sku = last || E'\x01' WHERE id = pass.id;
    END IF;
  END IF;
  IF piece IS NOT NULL THEN
    PERFORM FROM catalog_internal.due WHERE sku = ANY (piece) ORDER BY sku FOR UPDATE;
    PERFORM catalog_internal.apply_scope(piece);
  END IF;
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.follow_scope(integer) FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote. A row that is already due keeps its
-- earlier due_at and its better lane. Every mark moves the generation on, so that no answer to an earlier
-- request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of its
-- own failed, while a SKU that waits after any other error, or for a second answer, is asked again at once.
-- counts_as_live null leaves the live flag as it is; else it holds, whatever the SKU's deferrals had taught.
-- What is out of scope is marked in outside_due_at and stays unclaimed (apply_scope), what is asked for its
-- metadata waits for that no longer, and SKUs that the ledger does not know yet are sorted by the rules. A SKU that was asked for by name (refresh_skus) stays
-- ahead of all others until it is answered. Any other rank is the weight as it stands once the rows are
-- locked, because locking them may have waited for whoever tells the ledger of another weight
-- (watched_to_ledger). Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  marked bigint;
  ranked text[];
  unsorted text[];
  is_scoped boolean;
BEGIN
  -- Until this transaction ends nobody changes what is in scope.
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  is_scoped := (SELECT scoped FROM catalog_internal.scoping);
  WITH written AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(mark_due.skus) AS s
    ORDER BY s COLLATE "C"
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.outside_due_at IS NOT NULL THEN d.lane WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = (
        SELECT CASE
          WHEN d.reason = 'scope' THEN d.reason
          -- Who accepts a doubted price ends the wait for its second answer, and nothing else that its SKU is due for.
          WHEN d.reason = 'doubted' THEN excluded.reason
          -- No other reason to ask at once hides that it was reported: apply_scope and p_right go by that.
          WHEN excluded.reason = 'changed' OR excluded.reason = 'new' AND o.is_owed AND o.lane = 1 THEN 'changed'
          WHEN excluded.reason = 'new' THEN excluded.reason
          -- It may have been reported since its call began, which the answer to that does not settle.
          WHEN d.reason = 'new' AND o.is_owed AND excluded.lane < o.lane AND (d.claim IS NOT NULL OR d.asked_claim IS NOT NULL) THEN 'changed'
          -- What was reported stays so in the lane of errors, too, which is behind the one that it was marked for.
          WHEN o.is_owed AND (d.reason = 'changed' OR o.lane <= excluded.lane) THEN d.reason
          ELSE excluded.reason
        END
        FROM (
          SELECT coalesce(d.outside_due_at, d.due_at) <= now() AS is_owed,
            CASE WHEN d.lane > 0 THEN d.lane ELSE catalog_internal.lane_of(d.reason) END AS lane
        ) o
      ),
      live = coalesce(counts_as_live, d.live),
      live_left = CASE WHEN counts_as_live IS NULL THEN d.live_left ELSE 0 END,
      due_at = CASE WHEN d.outside_due_at IS NULL OR d.reason = 'scope' THEN least(d.due_at, excluded.due_at) ELSE d.due_at END,
      outside_due_at = CASE WHEN d.outside_due_at IS NOT NULL THEN least(d.outside_due_at, excluded.due_at) END,
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL OR d.reason = 'doubted' OR d.reason = 'scope' AND d.due_at > now()) AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank, is_scoped AND (generation = 1 OR outside_due_at IS NOT NULL) AS is_unsorted
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1), array_agg(sku) FILTER (WHERE is_unsorted)
  FROM written INTO marked, ranked, unsorted;
  ranked := ranked || ARRAY(SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus));
  UPDATE catalog_internal.due d SET rank = coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1)
  WHERE d.sku = ANY (ranked) AND d.rank <> coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1) AND d.rank < 'Infinity';
  IF unsorted IS NOT NULL THEN
    PERFORM catalog_internal.apply_scope(unsorted);
  END IF;
  RETURN marked;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
--> statement-breakpoint
-- Which promises the account can keep, the one place that decides it: in order of weight, and among equal
-- ones those first that ask for the least, until what there is for promises is used up. All of them kept in
-- turn would each be late as soon as they are too many together. A live SKU's is none that is shorter than can be
-- kept at the partner's ceiling, and takes nothing from others. `demand` is in refreshes a minute. SKUs that are not found or removed have no price that could get old, and those out of scope are not asked for: they
-- need nothing and are left out.
CREATE OR REPLACE FUNCTION catalog_internal.promises_that_fit(skus text[], max_ages double precision[], weights real[])
RETURNS TABLE (sku text, live boolean, demand double precision, fits boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
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
    LEFT JOIN LATERAL (SELECT s.state FROM catalog.skus s WHERE s.sku = a.sku OFFSET 0) s ON true
    LEFT JOIN LATERAL (SELECT d.live, d.outside_due_at FROM catalog_internal.due d WHERE d.sku = a.sku OFFSET 0) d ON true
    CROSS JOIN LATERAL (SELECT coalesce(d.live OR c.incident, false) AS live) k
    WHERE coalesce(s.state IN ('pending', 'priced'), true) AND d.outside_due_at IS NULL
  ) n;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.promises_that_fit(text[], double precision[], real[]) FROM PUBLIC;
--> statement-breakpoint
-- Copies into `scope_rules` what changed in catalog.scope since it was last read: what sellers' statements
-- recorded, or, with `everything`, all that differs, as rows do that came by replication and fired no
-- trigger. What the changes may concern is then to be sorted by follow_scope. Called with the row of
-- `scoping` locked. The lock comes last, so that nobody who sorts SKUs waits for more than the commit.
-- Planned each time: a plan from when there were few rows would read all of them for each.
CREATE OR REPLACE FUNCTION catalog_internal.read_scope(everything boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  is_scoped boolean := (SELECT scoped FROM catalog_internal.scoping);
  changed text[];
  changed_names text[];
BEGIN
  WITH taken AS (
    DELETE FROM catalog_internal.scope_changes c RETURNING c.kinds, c.names
  ), named AS (
    SELECT DISTINCT kind, value FROM (
      SELECT u.kind, u.value FROM taken t CROSS JOIN LATERAL unnest(t.kinds, t.names) AS u(kind, value)
      UNION ALL SELECT r.kind, r.name FROM catalog_internal.scope_rules r
      WHERE everything OR EXISTS (SELECT FROM taken WHERE kinds IS NULL)
      UNION ALL SELECT s.kind, s.value FROM catalog.scope s WHERE everything
    ) n
  ), present AS MATERIALIZED (
    SELECT n.kind, n.name, n.include, o.row_at FROM (
      SELECT n.kind, catalog_internal.scope_name(n.kind, n.value) AS name, bool_and(s.include) AS include
      FROM named n LEFT JOIN LATERAL (SELECT s.include FROM catalog.scope s WHERE s.kind = n.kind AND s.value = n.value OFFSET 0) s ON true
      GROUP BY 1, 2
    ) n LEFT JOIN LATERAL (SELECT o.ctid AS row_at, o.include FROM catalog_internal.scope_rules o WHERE o.kind = n.kind AND o.name = n.name OFFSET 0) o ON true
    WHERE n.include IS DISTINCT FROM o.include
  ), gone AS (
    DELETE FROM catalog_internal.scope_rules o USING present p WHERE p.include IS NULL AND o.ctid = p.row_at
  ), kept AS (
    INSERT INTO catalog_internal.scope_rules (kind, name, include)
    SELECT kind, name, include FROM present WHERE include IS NOT NULL
    ON CONFLICT (kind, name) DO UPDATE SET include = excluded.include
  )
  SELECT array_agg(p.kind), array_agg(p.name) INTO changed, changed_names FROM present p;
  IF changed IS NULL THEN
    RETURN;
  END IF;
  UPDATE catalog_internal.scoping SET
    prefix_lengths = ARRAY(SELECT DISTINCT length(name) FROM catalog_internal.scope_rules WHERE kind = 'prefix'),
    by_metadata = EXISTS (SELECT FROM catalog_internal.scope_rules WHERE kind IN ('brand', 'model', 'category') AND include);
  IF is_scoped THEN
    INSERT INTO catalog_internal.scope_pending (sku)
    SELECT u.name FROM unnest(changed, changed_names) AS u(kind, name) WHERE u.kind = 'sku' ORDER BY 1 ON CONFLICT DO NOTHING;
    PERFORM catalog_internal.sort_all_with(prefix) FROM (
      -- Of many prefixes all SKUs are sorted at once.
      SELECT DISTINCT CASE WHEN u.kind = 'prefix' AND cardinality(changed) <= 100 THEN u.name ELSE '' END AS prefix
      FROM unnest(changed, changed_names) AS u(kind, name) WHERE u.kind <> 'sku' ORDER BY 1
    ) p;
  END IF;
  LOCK TABLE catalog_internal.lock_scope IN EXCLUSIVE MODE;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.read_scope(boolean) FROM PUBLIC;
--> statement-breakpoint
-- Copies into `watched` what changed in catalog.watchlist since it was last read: what sellers' statements
-- recorded, or, with `everything`, all that differs, as rows do that came by replication and fired no
-- trigger. At most `most` SKUs are watched; those of the greatest weights come first, and others once there
-- is room. Called with the row of `watching` locked. Planned each time: a plan from when there were few rows
-- would read all of them for each. Looked up one by one, as OFFSET has it: a list that is deleted and put in
-- again is often analyzed while it is empty, and what is joined is then compared each with each. And by an
-- index, as enable_seqscan has it: of a list of a few rows on many pages, as a DELETE leaves it, an index seems to
-- cost more than to read all of it for each. A scan that cannot be avoided then seems to cost so much that Postgres
-- would compile it, which takes seconds: hence no jit.
CREATE OR REPLACE FUNCTION catalog_internal.read_watchlist(everything boolean, most integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
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
    FROM named n
    LEFT JOIN LATERAL (SELECT weight, max_age FROM catalog.watchlist w WHERE w.sku = n.sku OFFSET 0) w ON true
    LEFT JOIN LATERAL (SELECT weight, max_age FROM catalog_internal.watched o WHERE o.sku = n.sku OFFSET 0) o ON true
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
    WHERE weight IS NOT NULL AND pending IS DISTINCT FROM 'mark' AND NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = o.sku OFFSET 0);
    -- Deleted like that and back since, the ledger knows nothing of its promise.
    UPDATE catalog_internal.watched o SET pending = 'rank'
    WHERE o.max_age IS NOT NULL AND o.feasible AND o.pending IS NULL
      AND EXISTS (SELECT FROM catalog.skus s WHERE s.sku = o.sku AND s.state IN ('pending', 'priced') OFFSET 0)
      AND EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = o.sku AND d.promised_at IS NULL OFFSET 0);
    UPDATE catalog_internal.watching SET left_out = l.skus
    FROM (SELECT count(*) AS skus FROM catalog.watchlist w WHERE NOT EXISTS (SELECT FROM catalog_internal.watched o WHERE o.sku = w.sku OFFSET 0)) l
    WHERE left_out <> l.skus;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.read_watchlist(boolean, integer) FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs due now, ahead of everything else, and nothing makes them wait any longer: no deferral, no
-- error, no pause of calls after failures (but one that an operator has made endless). What is asked for at
-- the moment stays whose it is.
CREATE OR REPLACE FUNCTION catalog_internal.refresh_skus(skus text[], OUT marked bigint, OUT released bigint, OUT resumed boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
BEGIN
  SELECT count(*) INTO released FROM catalog_internal.due d
  WHERE d.sku = ANY (refresh_skus.skus) AND d.claim IS NULL AND d.held_until > clock_timestamp();
  marked := catalog_internal.mark_due(refresh_skus.skus, 'refresh');
  UPDATE catalog_internal.due d SET rank = 'Infinity', held_until = CASE WHEN d.claim IS NOT NULL THEN d.held_until END
  WHERE d.sku = ANY (refresh_skus.skus);
  resumed := catalog_internal.resume_calls();
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refresh_skus(text[]) FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs for at most `most` requests of sellers, the oldest first. One that is asked for at the moment is
-- left until the answer: an answer to an earlier request would put it off again. One that somebody has locked
-- is left for the next time. Returns how many it marked.
CREATE OR REPLACE FUNCTION catalog_internal.take_refreshes(most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
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
    WHERE NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku AND d.claim IS NOT NULL OFFSET 0)
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
  WHERE r.id = ANY (requests) AND (r.sku = ANY (free) OR NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku OFFSET 0));
  PERFORM catalog_internal.refresh_skus(free);
  RETURN cardinality(free);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.take_refreshes(integer) FROM PUBLIC;
--> statement-breakpoint
-- Tells the ledger of `most` SKUs what is pending of `watched`, and whether there is more. A SKU that is
-- watched anew is marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that
-- is watched no longer, is not marked for that; it gets its new rank at once where it is urgent, and with its
-- next mark elsewhere. A promise of its age holds from here on: one that was never asked for is to be at
-- once. Locks are taken in the order of everyone: lock_new_skus, known SKUs in order of sku, new SKUs, the
-- ledger in order of sku. Every row of the ledger is locked before its rank is compared, so that a concurrent
-- mark has either read the weight that counts now or is seen here. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each. What is written to
-- a row is looked up for it, and by an index (enable_seqscan): tables that were analyzed while they were empty, or
-- had few rows on many pages, would be read as a whole for each row.
CREATE OR REPLACE FUNCTION catalog_internal.watched_to_ledger(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
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
      FROM catalog_internal.watched w CROSS JOIN LATERAL (SELECT state, asked_at FROM catalog.skus s WHERE s.sku = w.sku OFFSET 0) s
      CROSS JOIN LATERAL (
        SELECT make_interval(secs => catalog_internal.live_promised_interval(w.max_age, CASE WHEN d.live THEN rate END)) AS every
      ) i
      WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL
    ) n WHERE n.promised_at IS NOT NULL
  )
  WHERE d.sku = ANY (told) AND (d.promised_at IS NOT NULL
    OR EXISTS (SELECT FROM catalog_internal.watched w WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL OFFSET 0));
  DELETE FROM catalog_internal.promise_cases p
  WHERE p.sku = ANY (told) AND (SELECT w.max_age IS NULL FROM catalog_internal.watched w WHERE w.sku = p.sku);
  -- Nobody but the watchlist has named it, nor has it been asked for: it is forgotten as one in scope (forgetUnknown),
  -- and not asked for its metadata.
  UPDATE catalog_internal.due d SET reason = 'watched', lane = 0, due_at = 'infinity'
  WHERE d.sku = ANY (told) AND d.reason = 'scope' AND d.generation = 1 AND d.rank < 'Infinity'
    AND d.claim IS NULL AND d.deferrals = 0 AND d.failures = 0
    AND (SELECT w.weight IS NULL FROM catalog_internal.watched w WHERE w.sku = d.sku)
    AND (SELECT s.state = 'pending' AND NOT s.in_manifest FROM catalog.skus s WHERE s.sku = d.sku);
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
-- Decides anew which promises are kept, and notes what all of them need, how many were kept in the last day,
-- and what hinders them. What has turned the ledger is told by watched_to_ledger. Called with the row of
-- `watching` locked, each minute and when the watchlist was changed.
CREATE OR REPLACE FUNCTION catalog_internal.weigh_promises() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  c record;
  fitting text[];
  live_demand double precision;
  others_demand double precision;
BEGIN
  IF NOT EXISTS (SELECT FROM catalog_internal.watched WHERE max_age IS NOT NULL)
     AND NOT EXISTS (SELECT FROM catalog_internal.promising WHERE promises > 0) THEN
    RETURN;
  END IF;
  SELECT * INTO c FROM catalog_internal.promise_capacity();
  SELECT coalesce(sum(demand) FILTER (WHERE live), 0), coalesce(sum(demand) FILTER (WHERE NOT live), 0),
    coalesce(array_agg(sku) FILTER (WHERE fits), '{}') INTO live_demand, others_demand, fitting
  FROM (
    SELECT array_agg(sku) AS skus, array_agg(max_age) AS ages, array_agg(weight) AS weights FROM catalog_internal.watched WHERE max_age IS NOT NULL
  ) a CROSS JOIN LATERAL catalog_internal.promises_that_fit(a.skus, a.ages, a.weights);
  -- By an array, which is known when this is planned, and no join: whatever the planner takes the list for, each SKU
  -- is looked up in a hash of it.
  UPDATE catalog_internal.watched w SET feasible = NOT w.feasible, pending = coalesce(w.pending, 'rank'),
    -- It counts from when it can be kept.
    promised_since = CASE WHEN w.feasible THEN w.promised_since ELSE clock_timestamp() END
  WHERE w.max_age IS NOT NULL AND w.feasible <> (w.sku = ANY (fitting));
  WITH day AS (
    SELECT coalesce(sum(catalog_internal.last_day(k.cases, k.hour)), 0) AS cases, coalesce(sum(catalog_internal.last_day(k.kept, k.hour)), 0) AS kept
    FROM catalog_internal.promise_cases k
  )
  UPDATE catalog_internal.promising SET promises = (SELECT count(*) FROM catalog_internal.watched WHERE max_age IS NOT NULL), feasible = cardinality(fitting),
    needed = c.requests * greatest(live_demand / c.live, others_demand / c.others), available = c.requests, cases = day.cases, kept = day.kept,
    hindered_at = CASE WHEN c.hindered IS NULL THEN hindered_at ELSE clock_timestamp() END, hindered_by = coalesce(c.hindered, hindered_by)
  FROM day;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.weigh_promises() FROM PUBLIC;
--> statement-breakpoint
-- The rules that match a SKU. A single statement without settings of its own, so that the planner sees through it.
CREATE OR REPLACE FUNCTION catalog_internal.scope_rules_of(of_sku text, of_brand text, of_model text, of_category text)
RETURNS TABLE (kind text, name text, include boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2
BEGIN ATOMIC
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r WHERE r.kind = 'sku' AND r.name = of_sku
  UNION ALL
  -- Looked up, as OFFSET has it: where rules seem to be few, all prefixes would be read for each SKU.
  SELECT r.kind, r.name, r.include
  FROM catalog_internal.scoping g CROSS JOIN LATERAL unnest(g.prefix_lengths) AS l(length)
  CROSS JOIN LATERAL (
    SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r WHERE r.kind = 'prefix' AND r.name = left(of_sku, l.length) OFFSET 0
  ) r
  UNION ALL
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r
  WHERE r.kind = 'brand' AND r.name = catalog_internal.scope_name('brand', of_brand)
  UNION ALL
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r
  WHERE r.kind = 'model' AND r.name = catalog_internal.scope_name('model', of_model)
  UNION ALL
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r
  WHERE r.kind = 'category' AND r.name = catalog_internal.scope_name('category', of_category);
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_rules_of(text, text, text, text) FROM PUBLIC;
