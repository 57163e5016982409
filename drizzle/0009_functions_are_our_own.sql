-- Functions of the two schemas called others' functions where their caller's search path had some that fit better. Those in SQL
-- are parsed now, once; the others have their path.
-- The lanes of the due ledger as people read them, by their numbers: the first is served first. LANES in
-- src/store/due.ts has the same order, and lane_of the reasons of each.
CREATE OR REPLACE FUNCTION catalog_internal.lane_names() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT ARRAY['changed', 'live', 'new', 'error', 'metadata', 'sweep'];
END;
--> statement-breakpoint
-- The lane that a reason is served in; the planner (src/sync/reprice/plan.ts) serves lower numbers first.
CREATE OR REPLACE FUNCTION catalog_internal.lane_of(reason text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE reason
    WHEN 'changed' THEN 1 WHEN 'watched' THEN 1 WHEN 'refresh' THEN 1
    WHEN 'live' THEN 2 WHEN 'unlisted' THEN 2
    WHEN 'new' THEN 3 WHEN 'absent' THEN 3 WHEN 'removed' THEN 3
    WHEN 'error' THEN 4
    WHEN 'metadata' THEN 5
    ELSE 6
  END::smallint;
END;
--> statement-breakpoint
-- Seconds that a snapshot-priced SKU's price may be old: its sweep, or its metadata's age where that is less or there
-- are no sweeps. A single expression, so that the planner puts it in place of the call.
CREATE OR REPLACE FUNCTION catalog_internal.snapshot_target(s catalog_internal.settings) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN s.sweep_interval > 0 THEN least(s.sweep_interval, s.metadata_interval) ELSE s.metadata_interval END;
END;
--> statement-breakpoint
-- Seconds without a checked delta from which it is late: two polls, and half an hour at least. catalog_state, health, the doubt
-- delta_late and the alert on it go by this. A single expression, as snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.delta_late_after(s catalog_internal.settings) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT greatest(1800, 2 * s.delta_interval);
END;
--> statement-breakpoint
-- Everything observed since a moment has a greater position than this, so a query for the moves of a SKU since then
-- leaves all older partitions alone. The hour allows for a clock that was set back.
CREATE OR REPLACE FUNCTION catalog_internal.position_before(moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT coalesce(max(position), -1) FROM catalog_internal.history_milestones WHERE at < moment - interval '1 hour';
END;
--> statement-breakpoint
-- position_before of sync.built_after. Without an argument, so that Postgres can evaluate it before it opens any
-- partition.
CREATE OR REPLACE FUNCTION catalog_internal.position_before_built() RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT catalog_internal.position_before(built_after) FROM catalog_internal.sync;
END;
--> statement-breakpoint
-- In how many answers of the last three days a price of the SKU had moved, and how many minutes that covers (since
-- its first price, three days at most): what its history says of its rate of change when it becomes live. The
-- condition on id leaves older partitions unopened.
CREATE OR REPLACE FUNCTION catalog_internal.past_moves(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT count(DISTINCT h.observed_at)::integer,
         CASE WHEN first_priced_at IS NULL THEN 0
           ELSE extract(epoch FROM least(now() - first_priced_at, interval '3 days')) / 60
         END
  FROM catalog.price_history h
  WHERE h.sku = of_sku AND h.observed_at > now() - interval '3 days'
    AND h.id > catalog_internal.position_before(now() - interval '3 days');
END;
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error is tried again at once. counts_as_live null leaves the live
-- flag as it is.
-- The rank is the weight in catalog.watchlist as it stands once the rows are locked, because locking them may have
-- waited for a seller's commit. Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
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
    ORDER BY s
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE WHEN d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason ELSE excluded.reason END,
      live = coalesce(counts_as_live, d.live),
      due_at = least(d.due_at, excluded.due_at),
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND d.failures > 0 AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1) FROM written INTO marked, ranked;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM (
    SELECT unnest(ranked) AS sku UNION SELECT w.sku FROM catalog.watchlist w WHERE w.sku = ANY (mark_due.skus)
  ) named LEFT JOIN catalog.watchlist w USING (sku)
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1);
  RETURN marked;
END
$$;
--> statement-breakpoint
-- Partition n of price_history holds the positions from 5,000,000 n on. Makes the one that is being written and the
-- next, where they are missing; under the lock, because two sessions may find one missing at once. Each is made as a
-- table of its own and then attached, which locks nobody out.
CREATE OR REPLACE FUNCTION catalog_internal.add_history_chunks() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  chunk bigint;
  called text;
BEGIN
  FOR chunk IN SELECT last_value / 5000000 + ahead FROM catalog_internal.change_positions, generate_series(0, 1) ahead LOOP
    called := format('price_history_%s', chunk);
    CONTINUE WHEN to_regclass('catalog_internal.' || called) IS NOT NULL;
    PERFORM catalog_internal.lock_changes();
    -- Made by another while this one waited: asked of the catalog itself, as a name once not found is remembered.
    CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'catalog_internal'::regnamespace AND relname = called);
    EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS)', called);
    EXECUTE format('ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.%I FOR VALUES FROM (%s) TO (%s)',
      called, chunk * 5000000, (chunk + 1) * 5000000);
    INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$$;
--> statement-breakpoint
-- Drops the oldest partition of price_history where all of it is older than so many seconds, never the one that is
-- being written. One a transaction: setval on the last dropped position is not rolled back when the rest is.
-- 'in use' means that somebody is reading the partition: it is dropped another time. The lock timeout is short,
-- because nobody else can read while this waits for the lock.
CREATE OR REPLACE FUNCTION catalog_internal.drop_history_chunk(kept_seconds double precision) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  chunk record;
  is_old text;
  old boolean;
BEGIN
  SELECT inhrelid::regclass AS name, substring(pg_get_expr(relpartbound, oid) FROM $re$ TO \('?(\d+)'?\)$re$)::bigint AS ends
    INTO chunk
    FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'catalog.price_history'::regclass
    ORDER BY ends LIMIT 1;
  IF chunk.ends > (SELECT last_value FROM catalog_internal.change_positions) THEN
    RETURN 'nothing old';
  END IF;
  is_old := format('SELECT NOT EXISTS (SELECT FROM %s WHERE observed_at >= now() - make_interval(secs => $1))', chunk.name);
  EXECUTE is_old INTO old USING kept_seconds;
  IF old THEN
    LOCK TABLE ONLY catalog.price_history IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', chunk.name);
    -- Again: who was writing at the first check is done by now.
    EXECUTE is_old INTO old USING kept_seconds;
  END IF;
  IF NOT old THEN
    RETURN 'nothing old';
  END IF;
  EXECUTE format('DROP TABLE %s', chunk.name);
  PERFORM setval('catalog_internal.dropped_positions', chunk.ends - 1);
  RETURN 'dropped';
EXCEPTION WHEN lock_not_available OR undefined_table THEN
  RETURN 'in use';
END
$$;
--> statement-breakpoint
-- For each INSERT, whoever sends it: also a daemon of an earlier version that still runs beside this one, or a
-- person. Before the statement, so before the defaults of its first row draw a position.
CREATE OR REPLACE FUNCTION catalog_internal.history_is_written() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM catalog_internal.lock_changes();
  RETURN NULL;
END
$$;
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller. Brand and model are
-- compared by their beginnings too, because the index products_brand_model holds only these.
CREATE OR REPLACE FUNCTION catalog.lowest_prices(
  of_size text, of_brand text DEFAULT NULL, of_model text DEFAULT NULL, of_size_type text DEFAULT NULL,
  most integer DEFAULT 100, only_actionable boolean DEFAULT true
) RETURNS TABLE (sku text, size text, price integer, size_type text, name text, brand text, model text, priced_at timestamptz, actionable boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
BEGIN ATOMIC
  SELECT p.sku, p.size, p.price, pr.size_map_size_type, pr.name, pr.brand, pr.model, t.priced_at, t.actionable
  FROM catalog.products pr
  JOIN catalog.prices p ON p.sku = pr.sku AND p.size = of_size AND p.price IS NOT NULL
  JOIN catalog.sku_trust t ON t.sku = pr.sku
  WHERE (of_brand IS NULL OR left(pr.brand, 200) = left(of_brand, 200) AND pr.brand = of_brand)
    AND (of_model IS NULL OR left(pr.model, 200) = left(of_model, 200) AND pr.model = of_model)
    AND (of_size_type IS NULL OR pr.size_map_size_type = of_size_type)
    AND (t.actionable OR NOT only_actionable)
  ORDER BY p.price, p.sku
  LIMIT most;
END;
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller.
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
    WHERE h.observed_at > now() - within
      -- Up to a correction of what the sizes mean, the prices were of other sizes.
      AND NOT EXISTS (
        SELECT FROM catalog.product_history c
        WHERE c.sku = h.sku AND c.field = 'size_map_size_type' AND c.observed_at >= h.observed_at
      )
    GROUP BY h.sku, h.size
  ) m
  LEFT JOIN catalog.products pr ON pr.sku = m.sku
  WHERE m.old_price <> m.new_price
  ORDER BY abs(m.new_price::float8 / nullif(m.old_price, 0) - 1) DESC NULLS FIRST, m.sku, m.size
  LIMIT most;
END;
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller.
CREATE OR REPLACE FUNCTION catalog.skus_past_target(most integer DEFAULT 1000) RETURNS SETOF catalog.sku_trust
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000
BEGIN ATOMIC
  SELECT t.* FROM catalog.sku_trust t WHERE t.past_target ORDER BY t.priced_at LIMIT most;
END;
--> statement-breakpoint
-- Triggers of ours also work where a role or a session is set to put rows in as a replica does (session_replication_role).
ALTER TABLE catalog.watchlist ENABLE ALWAYS TRIGGER watch_added, ENABLE ALWAYS TRIGGER watch_updated, ENABLE ALWAYS TRIGGER watch_deleted, ENABLE ALWAYS TRIGGER watch_emptied;
--> statement-breakpoint
ALTER TABLE catalog_internal.watch_changes ENABLE ALWAYS TRIGGER watch_committed;
--> statement-breakpoint
ALTER TABLE catalog.price_history ENABLE ALWAYS TRIGGER in_order;
--> statement-breakpoint
ALTER TABLE catalog.product_history ENABLE ALWAYS TRIGGER in_order;
