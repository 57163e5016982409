-- What a seller locked in the watchlist, or left open after SET CONSTRAINTS, held up the mirror. It reads the list from a copy of its own now, which
-- a daemon makes after the commit.
CREATE TABLE "catalog_internal"."watched" (
	"sku" text PRIMARY KEY NOT NULL,
	"weight" real,
	"pending" text,
	CONSTRAINT "watched_pending" CHECK ("catalog_internal"."watched"."pending" in ('mark', 'rank'))
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."watching" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"left_out" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "watching_one_row" CHECK ("catalog_internal"."watching"."id")
);
--> statement-breakpoint
CREATE INDEX "watched_pending" ON "catalog_internal"."watched" USING btree ("sku") WHERE "catalog_internal"."watched"."pending" is not null;
--> statement-breakpoint
DROP TRIGGER watch_committed ON catalog_internal.watch_changes;
--> statement-breakpoint
DROP FUNCTION catalog_internal.watch_committed();
--> statement-breakpoint
ALTER TABLE catalog_internal.watch_changes DROP COLUMN transaction;
--> statement-breakpoint
INSERT INTO catalog_internal.watching DEFAULT VALUES;
--> statement-breakpoint
INSERT INTO catalog_internal.watched (sku, weight) SELECT sku, weight FROM catalog.watchlist;
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
    SELECT n.sku, w.weight, o.weight AS was, n.added OR o.weight IS NULL AS is_new
    FROM named n LEFT JOIN catalog.watchlist w ON w.sku = n.sku LEFT JOIN catalog_internal.watched o ON o.sku = n.sku
    WHERE w.weight IS DISTINCT FROM o.weight OR (n.added AND w.weight IS NOT NULL)
  ), room AS (
    SELECT most - count(weight) + (SELECT count(*) FROM present WHERE weight IS NULL) AS skus FROM catalog_internal.watched
  )
  INSERT INTO catalog_internal.watched AS o (sku, weight, pending)
  SELECT sku, weight, CASE WHEN is_new AND weight IS NOT NULL THEN 'mark' ELSE 'rank' END
  FROM (SELECT *, row_number() OVER (PARTITION BY was IS NULL ORDER BY weight DESC, sku) AS place FROM present) p, room
  WHERE was IS NOT NULL OR place <= room.skus
  ON CONFLICT (sku) DO UPDATE SET weight = excluded.weight,
    pending = CASE WHEN o.pending = 'mark' AND excluded.weight IS NOT NULL THEN 'mark' ELSE excluded.pending END;
  IF everything THEN
    UPDATE catalog_internal.watching SET left_out = l.skus
    FROM (SELECT count(*) AS skus FROM catalog.watchlist w WHERE NOT EXISTS (SELECT FROM catalog_internal.watched o WHERE o.sku = w.sku)) l
    WHERE left_out <> l.skus;
  END IF;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.read_watchlist(boolean, integer) FROM PUBLIC;
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
  WHERE w.sku = ANY (told) AND d.sku = w.sku AND d.lane = 1 AND d.rank <> coalesce(w.weight, 1);
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;
  UPDATE catalog_internal.watched SET pending = NULL WHERE sku = ANY (told);
  RETURN cardinality(told) = most;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.watched_to_ledger(integer) FROM PUBLIC;
--> statement-breakpoint
-- A seller's statement is only recorded here, in a row of its own, and locks nothing that the mirror needs, however long
-- the transaction stays open. A daemon reads it after the commit (read_watchlist). SECURITY DEFINER, because
-- catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.watch_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO catalog_internal.watch_changes (added, skus)
  SELECT true, array_agg(sku) FROM added HAVING count(*) > 0;
  RETURN NULL;
END
$$;
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
    WHERE before.weight IS DISTINCT FROM after.weight
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
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error is tried again at once. counts_as_live null leaves the live
-- flag as it is.
-- The rank is the weight as it stands once the rows are locked, because locking them may have waited for whoever tells
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
    SELECT unnest(ranked) AS sku UNION SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus)
  ) named LEFT JOIN catalog_internal.watched w USING (sku)
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1);
  RETURN marked;
END
$$;
