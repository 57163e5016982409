CREATE TABLE "catalog_internal"."lock_scope" (

);
--> statement-breakpoint
CREATE TABLE "catalog"."scope" (
	"kind" text COLLATE "C" NOT NULL,
	"value" text COLLATE "C" NOT NULL,
	"include" boolean DEFAULT true NOT NULL,
	"note" text,
	CONSTRAINT "scope_kind_value_pk" PRIMARY KEY("kind","value"),
	CONSTRAINT "scope_kind" CHECK ("catalog"."scope"."kind" in ('sku', 'prefix', 'brand', 'model', 'category')),
	CONSTRAINT "scope_value" CHECK (length("catalog"."scope"."value") <= 512 and ("catalog"."scope"."kind" = 'prefix' or btrim("catalog"."scope"."value", E' \t\r\n') <> ''))
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."scope_changes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."scope_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kinds" text[],
	"names" text[]
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."scope_passes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."scope_passes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"prefix" text COLLATE "C" NOT NULL,
	"from_sku" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."scope_pending" (
	"sku" text COLLATE "C" PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."scope_rules" (
	"kind" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"include" boolean NOT NULL,
	CONSTRAINT "scope_rules_kind_name_pk" PRIMARY KEY("kind","name")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."scoping" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"scoped" boolean DEFAULT false NOT NULL,
	"prefix_lengths" integer[] DEFAULT '{}' NOT NULL,
	"by_metadata" boolean DEFAULT false NOT NULL,
	CONSTRAINT "scoping_one_row" CHECK ("catalog_internal"."scoping"."id")
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "outside_due_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog_internal"."instances" ADD COLUMN "scoped" boolean;--> statement-breakpoint
CREATE UNIQUE INDEX "scope_name" ON "catalog"."scope" USING btree ("kind",lower(btrim("value", E' \t\r\n'))) WHERE "catalog"."scope"."kind" in ('brand', 'model', 'category');--> statement-breakpoint
CREATE INDEX "scope_passes_prefix" ON "catalog_internal"."scope_passes" USING btree ("prefix");
--> statement-breakpoint
INSERT INTO catalog_internal.scoping DEFAULT VALUES;
--> statement-breakpoint
COMMENT ON TABLE catalog.scope IS 'What is priced, with MIRROR_SCOPE=scope: SKUs that a rule includes. A rule of kind sku decides for its SKU, whatever others say; of all other rules one that includes the SKU has to match, and none that excludes it. Without a rule nothing is priced. What is out of scope keeps its prices and their history, is known, and is not asked for. A change takes effect with its commit.';
COMMENT ON COLUMN catalog.scope.kind IS 'sku: the SKU of this value; prefix: all SKUs that begin with it, all there are where it is empty; brand, model, category: all SKUs whose column of that name in catalog.products has this value. For a rule of the latter that includes SKUs, each SKU that no other rule decides is asked for once.';
COMMENT ON COLUMN catalog.scope.value IS 'Of kinds sku and prefix letter by letter. Of brand, model and category the case of A to Z and blanks around it do not matter.';
COMMENT ON COLUMN catalog.scope.include IS 'False: SKUs that match are out of scope, whatever other rules include them; but not one that has a rule of its own.';
COMMENT ON COLUMN catalog.scope.note IS 'For whoever reads the rules.';
COMMENT ON TABLE catalog_internal.scope_changes IS 'What sellers have done to catalog.scope and the mirror has not read yet.';
COMMENT ON TABLE catalog_internal.scope_rules IS 'The rules of catalog.scope as the mirror has read them.';
COMMENT ON TABLE catalog_internal.scoping IS 'One row: whether the rules of catalog.scope count, and what they need.';
COMMENT ON TABLE catalog_internal.scope_pending IS 'SKUs whose rules have changed and that are still to be sorted by them.';
COMMENT ON TABLE catalog_internal.scope_passes IS 'SKUs by prefix that are still to be sorted by the rules of catalog.scope.';
COMMENT ON TABLE catalog_internal.lock_scope IS 'Empty. Locked by whoever sorts SKUs by the rules of catalog.scope, and by whoever changes what they are sorted by.';
COMMENT ON COLUMN catalog_internal.due.outside_due_at IS 'Of a SKU that is out of scope, when it would be due; null: it is in scope.';
--> statement-breakpoint
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON catalog.scope TO catalog_watcher;
  END IF;
END
$$;
--> statement-breakpoint
-- What a rule's value is compared as: SKUs and their prefixes letter by letter; the names of brands, models and categories, in rules and in metadata
-- alike, without the case of A to Z and without the blanks around them. By the collation "C", so that it is the same in every database, for ever.
CREATE OR REPLACE FUNCTION catalog_internal.scope_name(kind text, value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN kind IN ('sku', 'prefix') THEN value ELSE lower(btrim(value, E' \t\r\n') COLLATE "C") END;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_name(text, text) FROM PUBLIC;
--> statement-breakpoint
-- The rules that match a SKU. A single statement without settings of its own, so that the planner sees through it.
CREATE OR REPLACE FUNCTION catalog_internal.scope_rules_of(of_sku text, of_brand text, of_model text, of_category text)
RETURNS TABLE (kind text, name text, include boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2
BEGIN ATOMIC
  SELECT r.kind, r.name, r.include FROM catalog_internal.scope_rules r WHERE r.kind = 'sku' AND r.name = of_sku
  UNION ALL
  SELECT r.kind, r.name, r.include
  FROM catalog_internal.scoping g CROSS JOIN LATERAL unnest(g.prefix_lengths) AS l(length)
  JOIN catalog_internal.scope_rules r ON r.kind = 'prefix' AND r.name = left(of_sku, l.length)
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
--> statement-breakpoint
-- Whether a SKU is in scope, by the rules: `in`, `out`, or `unknown` where only its metadata can tell, and nobody has read that yet. A rule that
-- names the SKU itself decides; of all others one that includes it has to match, and none that excludes it. A single row.
CREATE OR REPLACE FUNCTION catalog_internal.scope_of(of_sku text, of_brand text, of_model text, of_category text, has_metadata boolean)
RETURNS TABLE (place text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
  SELECT CASE WHEN NOT g.scoped THEN 'in' ELSE (
    SELECT CASE
      WHEN bool_or(m.include) FILTER (WHERE m.kind = 'sku') THEN 'in'
      WHEN bool_or(NOT m.include) THEN 'out'
      WHEN bool_or(m.include) THEN 'in'
      WHEN g.by_metadata AND NOT has_metadata THEN 'unknown'
      ELSE 'out'
    END
    FROM catalog_internal.scope_rules_of(of_sku, of_brand, of_model, of_category) m
  ) END
  FROM catalog_internal.scoping g;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_of(text, text, text, text, boolean) FROM PUBLIC;
--> statement-breakpoint
-- How a row of the ledger is to stand by scope_of: `in`; `out`: not asked for; `asked`: asked for once, because a rule needs its metadata. A SKU that
-- was answered without a record is asked for again only where it was reported since. `kept`: when it was, or would be, due.
CREATE OR REPLACE FUNCTION catalog_internal.scope_standing(place text, state text, reason text, kept timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN place <> 'unknown' THEN place
    WHEN state = 'pending' OR reason = 'scope' OR reason IN ('new', 'changed') AND kept <= now() THEN 'asked'
    ELSE 'out'
  END;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_standing(text, text, text, timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- A seller's statement is only recorded here, in a row of its own, and locks nothing that the mirror needs, however long
-- the transaction stays open. A daemon reads it after the commit (read_scope). SECURITY DEFINER, because
-- catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.scope_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO catalog_internal.scope_changes (kinds, names)
    SELECT array_agg(kind), array_agg(value) FROM becomes HAVING count(*) > 0;
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO catalog_internal.scope_changes (kinds, names)
    SELECT array_agg(kind), array_agg(value)
    FROM was before FULL JOIN becomes after USING (kind, value)
    WHERE before.include IS DISTINCT FROM after.include
    HAVING count(*) > 0;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO catalog_internal.scope_changes (kinds, names)
    SELECT array_agg(kind), array_agg(value) FROM was HAVING count(*) > 0;
  ELSE
    INSERT INTO catalog_internal.scope_changes DEFAULT VALUES;
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.scope_changed() FROM PUBLIC;

CREATE OR REPLACE TRIGGER scope_added AFTER INSERT ON catalog.scope
REFERENCING NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.scope_changed();
CREATE OR REPLACE TRIGGER scope_updated AFTER UPDATE ON catalog.scope
REFERENCING OLD TABLE AS was NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.scope_changed();
CREATE OR REPLACE TRIGGER scope_deleted AFTER DELETE ON catalog.scope
REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.scope_changed();
CREATE OR REPLACE TRIGGER scope_emptied AFTER TRUNCATE ON catalog.scope
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.scope_changed();

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog.scope ENABLE ALWAYS TRIGGER scope_added, ENABLE ALWAYS TRIGGER scope_updated, ENABLE ALWAYS TRIGGER scope_deleted, ENABLE ALWAYS TRIGGER scope_emptied;
--> statement-breakpoint
-- Sorts SKUs by the rules, and returns how many stand otherwise than before. Call it with their rows of the ledger locked, after all that is written of
-- them. What leaves the scope keeps all that is known of it: in outside_due_at when it would be due, which marks move on; its lane is 0, which nobody
-- claims. What comes into it is due then, or now where that is past: since now it is late.
-- The lock holds back whoever changes the rules until this transaction has ended, so that all SKUs that were sorted by the old ones are seen by the
-- pass that follows (follow_scope). Planned each time: a plan from when there were few rules would read all of them for each SKU.
CREATE OR REPLACE FUNCTION catalog_internal.apply_scope(skus text[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  moved bigint;
BEGIN
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  UPDATE catalog_internal.due d SET
    outside_due_at = CASE WHEN n.standing <> 'in' THEN n.kept END,
    due_at = CASE n.standing WHEN 'out' THEN 'infinity' WHEN 'asked' THEN now() ELSE greatest(n.kept, now()) END,
    reason = n.reason,
    lane = CASE
      WHEN n.standing = 'out' THEN 0
      WHEN n.failures > 0 AND n.kept <= now() THEN catalog_internal.lane_of('error')
      ELSE catalog_internal.lane_of(n.reason)
    END,
    -- One that was asked for by name stays ahead of all others.
    rank = CASE WHEN d.rank < 'Infinity' THEN coalesce(n.weight, 1) ELSE d.rank END
  FROM (
    SELECT l.sku, l.failures, k.kept, t.standing, w.weight,
      CASE
        WHEN t.standing = 'asked' THEN 'scope'
        WHEN l.reason <> 'scope' THEN l.reason
        WHEN coalesce(s.state, 'pending') = 'pending' THEN 'new'
        ELSE 'changed'
      END AS reason
    FROM unnest(apply_scope.skus) AS a(sku) JOIN catalog_internal.due l ON l.sku = a.sku
    -- One that the same statement inserts is not to be seen here.
    LEFT JOIN catalog.skus s ON s.sku = a.sku LEFT JOIN catalog.products p ON p.sku = a.sku LEFT JOIN catalog_internal.watched w ON w.sku = a.sku
    CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, p.sku IS NOT NULL) o
    CROSS JOIN LATERAL (SELECT coalesce(l.outside_due_at, l.due_at) AS kept) k
    CROSS JOIN LATERAL (SELECT catalog_internal.scope_standing(o.place, coalesce(s.state, 'pending'), l.reason, k.kept) AS standing) t
    WHERE t.standing <> CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END
  ) n
  WHERE d.sku = n.sku;
  GET DIAGNOSTICS moved = ROW_COUNT;
  RETURN moved;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.apply_scope(text[]) FROM PUBLIC;
--> statement-breakpoint
-- All SKUs with a prefix are to be sorted (follow_scope), from the first on, also those that a pass has just sorted.
CREATE OR REPLACE FUNCTION catalog_internal.sort_all_with(of_prefix text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- A pass of all SKUs that has not begun sorts these, too.
  IF EXISTS (SELECT FROM catalog_internal.scope_passes WHERE prefix = '' AND from_sku = '') THEN
    RETURN;
  END IF;
  DELETE FROM catalog_internal.scope_passes WHERE starts_with(prefix, of_prefix);
  INSERT INTO catalog_internal.scope_passes (prefix, from_sku) VALUES (of_prefix, of_prefix);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.sort_all_with(text) FROM PUBLIC;
--> statement-breakpoint
-- Says whether the rules of catalog.scope count (MIRROR_SCOPE). Where that changes, all SKUs are to be sorted anew. Returns whether it has.
CREATE OR REPLACE FUNCTION catalog_internal.set_scope(by_rules boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE catalog_internal.scoping SET scoped = by_rules WHERE scoped <> by_rules;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM catalog_internal.scope_pending;
  PERFORM catalog_internal.sort_all_with('');
  LOCK TABLE catalog_internal.lock_scope IN EXCLUSIVE MODE;
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.set_scope(boolean) FROM PUBLIC;
--> statement-breakpoint
-- Copies into `scope_rules` what changed in catalog.scope since it was last read: what sellers' statements recorded, or, with `everything`, all that
-- differs, as rows do that came by replication and fired no trigger. What the changes may concern is then to be sorted by follow_scope. Called with
-- the row of `scoping` locked. The lock comes last, so that nobody who sorts SKUs waits for more than the commit.
-- Planned each time: a plan from when there were few rows would read all of them for each.
CREATE OR REPLACE FUNCTION catalog_internal.read_scope(everything boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
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
    SELECT n.kind, n.name, n.include FROM (
      SELECT n.kind, catalog_internal.scope_name(n.kind, n.value) AS name, bool_and(s.include) AS include
      FROM named n LEFT JOIN catalog.scope s ON s.kind = n.kind AND s.value = n.value
      GROUP BY 1, 2
    ) n LEFT JOIN catalog_internal.scope_rules o ON o.kind = n.kind AND o.name = n.name
    WHERE n.include IS DISTINCT FROM o.include
  ), gone AS (
    DELETE FROM catalog_internal.scope_rules o USING present p WHERE p.include IS NULL AND o.kind = p.kind AND o.name = p.name
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
-- Sorts the next SKUs that are to be sorted, `most` of them, and returns whether there may be more. Those of a pass are compared without a lock, as all
-- that was sorted by other rules is committed (apply_scope), and only those that stand otherwise than they are to are locked, in order of sku, as
-- everyone locks the ledger. Called with the row of `scoping` locked.
CREATE OR REPLACE FUNCTION catalog_internal.follow_scope(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  pass catalog_internal.scope_passes;
  last text;
  is_over boolean;
  piece text[];
BEGIN
  WITH taken AS (
    DELETE FROM catalog_internal.scope_pending WHERE sku IN (SELECT sku FROM catalog_internal.scope_pending ORDER BY sku LIMIT most)
    RETURNING sku
  )
  SELECT array_agg(sku) INTO piece FROM taken;
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
      LEFT JOIN catalog.skus s ON s.sku = l.sku LEFT JOIN catalog.products p ON p.sku = l.sku
      CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, p.sku IS NOT NULL) o
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
-- Sorts the SKUs of a claim, and gives back those that are out of scope, which it returns: while SKUs are still to be sorted, nothing that is out of scope
-- is asked for all the same.
CREATE OR REPLACE FUNCTION catalog_internal.give_back_outside(of_claim bigint, skus text[]) RETURNS SETOF text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  claimed text[];
BEGIN
  SELECT array_agg(l.sku) INTO claimed
  FROM (SELECT sku FROM catalog_internal.due WHERE sku = ANY (skus) AND claim = of_claim ORDER BY sku FOR UPDATE) l;
  IF claimed IS NULL THEN
    RETURN;
  END IF;
  PERFORM catalog_internal.apply_scope(claimed);
  RETURN QUERY UPDATE catalog_internal.due d SET claim = NULL, held_until = NULL
  WHERE d.sku = ANY (claimed) AND d.lane = 0 RETURNING d.sku::text;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.give_back_outside(bigint, text[]) FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error, or for a second answer, is asked again at once. counts_as_live null leaves the live
-- flag as it is.
-- What is out of scope is marked in outside_due_at and stays unclaimed (apply_scope), and SKUs that the ledger does not know yet are sorted by the rules.
-- A SKU that was asked for by name (refresh_skus) stays ahead of all others until it is answered. Any other rank is the weight as it stands once the rows are locked, because locking them may have waited for whoever tells
-- the ledger of another weight (watched_to_ledger). Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
      reason = CASE
        WHEN d.reason = 'scope' THEN d.reason
        WHEN d.lane = 0 AND d.outside_due_at <= now() AND catalog_internal.lane_of(d.reason) <= excluded.lane THEN d.reason
        WHEN d.lane > 0 AND d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason
        ELSE excluded.reason
      END,
      live = coalesce(counts_as_live, d.live),
      due_at = CASE WHEN d.outside_due_at IS NULL THEN least(d.due_at, excluded.due_at) ELSE d.due_at END,
      outside_due_at = CASE WHEN d.outside_due_at IS NOT NULL THEN least(d.outside_due_at, excluded.due_at) END,
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL) AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank, is_scoped AND (generation = 1 OR outside_due_at IS NOT NULL) AS is_unsorted
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1), array_agg(sku) FILTER (WHERE is_unsorted)
  FROM written INTO marked, ranked, unsorted;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM (
    SELECT unnest(ranked) AS sku UNION SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus)
  ) named LEFT JOIN catalog_internal.watched w USING (sku)
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1) AND d.rank < 'Infinity';
  IF unsorted IS NOT NULL THEN
    PERFORM catalog_internal.apply_scope(unsorted);
  END IF;
  RETURN marked;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
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
      OR outside_due_at > moment AND outside_due_at < 'infinity' AND shift > interval '10 minutes'
    )
    ORDER BY d.sku LIMIT most FOR UPDATE OF d
  ),
  redated AS (
    UPDATE catalog_internal.due d SET held_until = catalog_internal.awaited(d.held_until, moment, shift),
      promised_at = catalog_internal.awaited(d.promised_at, moment, shift), promised_by = catalog_internal.awaited(d.promised_by, moment, shift),
      outside_due_at = CASE WHEN d.outside_due_at < 'infinity' THEN catalog_internal.awaited(d.outside_due_at, moment, shift) ELSE d.outside_due_at END,
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
  SELECT coalesce(d.due_at <= now(), false) AS owed,
         -- What is out of scope is asked for no more, and its prices are no fresher for that.
         coalesce(coalesce(d.outside_due_at, d.due_at) <= now() AND d.reason <> 'metadata', false) AS reprice_due,
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
           WHEN d.outside_due_at IS NOT NULL THEN 'out_of_scope'
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
         coalesce(coalesce(d.outside_due_at, d.due_at) <= now() AND d.reason = 'changed', false) AS reported
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
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a refresh is due: new, changed, live, unlisted (not in_manifest), sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command), doubted (to be answered a second time), clock (asked while the clock of Postgres was ahead), scope (a rule of catalog.scope needs its metadata); null: none is due, as of all that is out of scope.';
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the due refresh is served: changed (urgent: also watched, refresh and doubted), live (also unlisted), new (also clock), deferred or error (waits, or has waited), metadata, sweep; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the refresh is due; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, its answer could not be read, or a call with this SKU alone failed.';
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused or paused without an end, or nothing counted within five minutes.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced and in scope, at a time that can be believed, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: out_of_scope (catalog.scope says that it is not priced, so its prices only get older); pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); implausible (the partner says it, but it is hardly a price: catalog.explain says why), mass-move (prices of many SKUs have moved implausibly), both until a second answer, five minutes later or more, says the same; owed (a re-price: see owed_reason; the next turn of a live SKU is none); past_target (too old: beyond target_age, and for a live SKU in its turns beyond LIVE_INTERVAL and the longest wait that is planned); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where its prices may be acted on: doubt is null, and p_right is ACTIONABLE_CONFIDENCE at least. A size without a readable price is no price all the same.';
COMMENT ON COLUMN catalog.sku_trust.p_right IS 'Probability that the partner, asked now, would answer every price of this SKU as it is here; null where it has none, or nobody knows when it was answered (doubt is clock). catalog.calibration says how well that has held.';
COMMENT ON COLUMN catalog.sku_trust.size_p_right IS 'The same for one of its sizes: when a SKU moves, not all of its sizes do.';
COMMENT ON COLUMN catalog.sku_trust.size_actionable IS 'The same as actionable for one of its sizes: doubt is null, and size_p_right is ACTIONABLE_CONFIDENCE at least.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller.
CREATE OR REPLACE FUNCTION catalog.skus_past_target(most integer DEFAULT 1000) RETURNS SETOF catalog.sku_trust
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000
BEGIN ATOMIC
  SELECT t.* FROM catalog.sku_trust t WHERE t.past_target AND t.doubt IS DISTINCT FROM 'out_of_scope' ORDER BY t.priced_at LIMIT most;
END;

REVOKE ALL ON FUNCTION catalog.skus_past_target(integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.skus_past_target(integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.skus_past_target(integer) IS 'SKUs in scope whose prices are older than their target, oldest first, at most so many: rows of catalog.sku_trust.';
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

COMMENT ON FUNCTION catalog.explain(text) IS 'Where each number of a SKU comes from, as JSON: whether it is in scope, and by which rules of catalog.scope (the first decides; null: MIRROR_SCOPE is catalog); the answer, and why it was asked for; the report of the delta; how likely the prices are right, and what speaks against them; what is believed of its changes; the next refresh; each size with the price before. Null: the SKU is not known.';
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
LEFT JOIN catalog_internal.pause z ON z.resumed_by IS NULL AND z.until > now()
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= now() AND (deferrals = 0 AND (doubt IS NULL OR failures > 0) OR held_until IS NULL OR claim IS NOT NULL OR held_until <= now())) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0 AND outside_due_at IS NULL) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= now()) AS oldest_due_at
  FROM catalog_internal.due
) d
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE s.price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE s.state = 'pending') AS pending_skus
  FROM catalog_internal.due l JOIN catalog.skus s ON s.sku = l.sku
  WHERE (SELECT scoped FROM catalog_internal.scoping) AND l.outside_due_at IS NOT NULL
) o;

COMMENT ON VIEW catalog.sync_status IS 'How the mirror stands, one row.';
COMMENT ON COLUMN catalog.sync_status.snapshot_id IS 'Snapshot that the mirror follows: the delta is asked from there.';
COMMENT ON COLUMN catalog.sync_status.snapshot_generated_at IS 'Build time of the newest snapshot that the manifest route told of.';
COMMENT ON COLUMN catalog.sync_status.manifest_applied_at IS 'When a manifest was last applied (baseline).';
COMMENT ON COLUMN catalog.sync_status.delta_checked_at IS 'When the delta was last asked for and applied.';
COMMENT ON COLUMN catalog.sync_status.skus IS 'SKUs in the mirror, in any state.';
COMMENT ON COLUMN catalog.sync_status.live_skus IS 'SKUs in scope of price_source live.';
COMMENT ON COLUMN catalog.sync_status.pending_skus IS 'SKUs in scope that are not priced yet.';
COMMENT ON COLUMN catalog.sync_status.due_skus IS 'SKUs due now; one that was deferred, or waits for a second answer, counts once its wait is over.';
COMMENT ON COLUMN catalog.sync_status.deferred_skus IS 'SKUs that the partner deferred, waiting or due again.';
COMMENT ON COLUMN catalog.sync_status.oldest_due_at IS 'Since when the SKU that has been due for longest is due; null: nothing is due.';
COMMENT ON COLUMN catalog.sync_status.requests_per_minute IS 'Requests a minute that the pacer allows the mirror at present.';
COMMENT ON COLUMN catalog.sync_status.backing_off_until IS 'Until when nobody sends after a refusal; null: no back-off.';
COMMENT ON COLUMN catalog.sync_status.catalog_state IS 'ok; stale: the catalog routes cannot be trusted to report changes, SKUs are re-priced by age; none: no baseline yet.';
COMMENT ON COLUMN catalog.sync_status.incident_since IS 'Since when the whole catalog is taken for live-priced: prices age, and are refreshed by worth with all there is; null: no incident.';
COMMENT ON COLUMN catalog.sync_status.refusal IS 'How the partner refused the last request: throttled-or-forbidden (403), unauthorised (401), authorizer-fault (the authorizer''s 500), account-not-configured; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refused_since IS 'When the first of the present refusals came; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refusals IS 'Refusals in a row, with nothing let through in between.';
COMMENT ON COLUMN catalog.sync_status.paused_since IS 'Since when `catalog-mirror pause` keeps all requests back; null: not paused.';
COMMENT ON COLUMN catalog.sync_status.paused_until IS 'When the pause ends by itself; infinity: with `catalog-mirror resume`; null: not paused.';
COMMENT ON COLUMN catalog.sync_status.skus_in_scope IS 'SKUs that are in scope: with MIRROR_SCOPE=catalog all, else those that the rules of catalog.scope include.';
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
-- Which promises the account can keep, the one place that decides it: in order of weight, and among equal ones those first that ask for the least, until
-- what there is for promises is used up. All of them kept in turn would each be late as soon as they are too many together. `demand` is in
-- refreshes a minute. SKUs that are not found or removed have no price that could get old, and those out of scope are not asked for: they
-- need nothing and are left out.
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
    WHERE coalesce(s.state IN ('pending', 'priced'), true) AND d.outside_due_at IS NULL
  ) n;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.promises_that_fit(text[], double precision[], real[]) FROM PUBLIC;
--> statement-breakpoint
COMMENT ON FUNCTION catalog.refresh(text[]) IS 'Has SKUs asked for before everything else, and ends what holds them back after errors and deferrals. Returns how many are due now: unknown ones, those out of scope and nulls are left out, and each counts once. At most 1,000 a call, and a quarter of the mirror''s requests for all callers together; above that it fails with SQLSTATE CM004 and says when to try again. Does not wait: catalog.refresh_now does.';
--> statement-breakpoint
-- Each promise of a price's age, and what becomes of it. Which of them fit is weighed once a minute and after each change (weigh_promises).
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
    THEN floor(extract(epoch FROM now() - greatest(s.priced_at, w.promised_since)) / w.max_age) END AS cases
) o
WHERE l.max_age IS NOT NULL;
--> statement-breakpoint
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT SELECT ON catalog.promises TO catalog_watcher;
  END IF;
END
$$;
--> statement-breakpoint
COMMENT ON COLUMN catalog.promises.because IS 'What speaks against it at present: not read by the mirror yet (nor where WATCHLIST_MAX_SKUS leaves it out), removed, not found, out of scope, the account cannot, paused, backing off after a refusal, calls are failing, not priced yet, deferred by the partner, calls with it fail, waits for a second answer, late; null: nothing.';
