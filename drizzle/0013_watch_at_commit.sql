CREATE TABLE "catalog_internal"."watch_changes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."watch_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"transaction" text NOT NULL,
	"added" boolean NOT NULL,
	"skus" text[]
);
--> statement-breakpoint
-- What no answer could name is no SKU, and no plan can be made with what is no number (NaN is greater than all of them). Rows that are
-- there stay.
ALTER TABLE "catalog"."watchlist" DROP CONSTRAINT "watchlist_weight";
--> statement-breakpoint
ALTER TABLE "catalog"."watchlist" ADD CONSTRAINT "watchlist_weight" CHECK ("catalog"."watchlist"."weight" > 0 and "catalog"."watchlist"."weight" < 'Infinity') NOT VALID;
--> statement-breakpoint
ALTER TABLE "catalog"."watchlist" ADD CONSTRAINT "watchlist_sku" CHECK (length("catalog"."watchlist"."sku") between 1 and 512) NOT VALID;
--> statement-breakpoint

-- A seller's transaction may stay open for long after its INSERT. Marking locks the SKU and its row in the ledger, and whoever
-- holds these holds up deltas and answers; so it is only noted here, and done when the transaction commits.
CREATE OR REPLACE FUNCTION catalog_internal.watch_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO catalog_internal.watch_changes (transaction, added, skus)
  SELECT pg_current_xact_id()::text, true, array_agg(sku) FROM added HAVING count(*) > 0;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE FUNCTION catalog_internal.watch_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    INSERT INTO catalog_internal.watch_changes (transaction, added, skus)
    SELECT pg_current_xact_id()::text, before.sku IS NULL, array_agg(sku)
    FROM was before FULL JOIN becomes after USING (sku)
    WHERE before.weight IS DISTINCT FROM after.weight
    GROUP BY before.sku IS NULL;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO catalog_internal.watch_changes (transaction, added, skus)
    SELECT pg_current_xact_id()::text, false, array_agg(sku) FROM was HAVING count(*) > 0;
  ELSE
    INSERT INTO catalog_internal.watch_changes (transaction, added) VALUES (pg_current_xact_id()::text, false);
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER watch_updated AFTER UPDATE ON catalog.watchlist
REFERENCING OLD TABLE AS was NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
--> statement-breakpoint
CREATE TRIGGER watch_deleted AFTER DELETE ON catalog.watchlist
REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
--> statement-breakpoint
CREATE TRIGGER watch_emptied AFTER TRUNCATE ON catalog.watchlist
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
--> statement-breakpoint

-- At the commit, once for all that the transaction did: the first of its rows takes them all. SKUs that were inserted and still are
-- watched are marked and mirrored. Whose weight changed, or who is watched no longer, is not looked at for that, but has the right rank
-- from now on where it is urgent; elsewhere the next mark gives it. Locks in the order of everyone here: known SKUs in order of sku,
-- SKUs that are new, the ledger in order of sku.
CREATE FUNCTION catalog_internal.watch_committed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  marked text[];
  reranked text[];
BEGIN
  WITH mine AS (
    DELETE FROM catalog_internal.watch_changes WHERE transaction = pg_current_xact_id()::text RETURNING added, skus
  ), named AS (
    SELECT sku, bool_or(added) AS added FROM mine, unnest(skus) AS sku GROUP BY sku
  ), present AS (
    SELECT n.sku, n.added AND w.sku IS NOT NULL AS to_mark, coalesce(w.weight, 1) AS weight
    FROM named n LEFT JOIN catalog.watchlist w ON w.sku = n.sku
  )
  SELECT (SELECT array_agg(sku ORDER BY sku) FROM present WHERE to_mark),
         (SELECT array_agg(d.sku) FROM present p JOIN catalog_internal.due d ON d.sku = p.sku
            WHERE NOT p.to_mark AND d.lane = 1 AND d.rank <> p.weight)
         || (SELECT array_agg(sku) FROM catalog_internal.due
               WHERE lane = 1 AND rank <> 1 AND EXISTS (SELECT FROM mine WHERE skus IS NULL))
    INTO marked, reranked;
  IF marked IS NOT NULL THEN
    PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR UPDATE;
    INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ON CONFLICT DO NOTHING;
  END IF;
  IF reranked IS NOT NULL THEN
    PERFORM FROM catalog_internal.due WHERE sku = ANY (marked || reranked) ORDER BY sku FOR UPDATE;
    UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
    FROM unnest(reranked) AS r(sku) LEFT JOIN catalog.watchlist w USING (sku)
    WHERE d.sku = r.sku AND d.rank <> coalesce(w.weight, 1);
  END IF;
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE CONSTRAINT TRIGGER watch_committed AFTER INSERT ON catalog_internal.watch_changes
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION catalog_internal.watch_committed();
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.watch_changed(), catalog_internal.watch_committed() FROM PUBLIC;
--> statement-breakpoint
COMMENT ON COLUMN catalog.watchlist.weight IS 'How much more than an ordinary SKU (1) this one matters: what is urgent is served in its order, and where live looks are scarce, more go to what weighs more. A new weight holds from its commit on.';
