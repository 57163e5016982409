-- The schema of the first release. First the tables, as drizzle-kit generates them from src/store/schema*.ts; then what
-- drizzle-kit does not know of. Functions and views stand here as they were then: their present form is in drizzle/objects.

CREATE SCHEMA "catalog";
--> statement-breakpoint
-- Made by whoever applies migrations, for its own table.
CREATE SCHEMA IF NOT EXISTS "catalog_internal";
--> statement-breakpoint
CREATE SEQUENCE "catalog_internal"."change_positions" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE SEQUENCE "catalog_internal"."claim_numbers" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE SEQUENCE "catalog_internal"."dropped_positions" INCREMENT BY 1 MINVALUE 0 MAXVALUE 9223372036854775807 START WITH 0 CACHE 1;--> statement-breakpoint
CREATE TABLE "catalog"."price_history" (
	"id" bigint PRIMARY KEY DEFAULT nextval('catalog_internal.change_positions') NOT NULL,
	"sku" text NOT NULL,
	"size" text NOT NULL,
	"old_price" integer,
	"new_price" integer,
	"observed_at" timestamp with time zone NOT NULL,
	"size_type_changed" boolean DEFAULT false NOT NULL
-- drizzle-kit knows no partitions. Each is made ahead of its first row (catalog_internal.add_history_chunks).
) PARTITION BY RANGE ("id");
--> statement-breakpoint
CREATE TABLE "catalog"."prices" (
	"sku" text NOT NULL,
	"size" text NOT NULL,
	"price" integer,
	"entry" jsonb,
	"changed_at" timestamp with time zone NOT NULL,
	CONSTRAINT "prices_sku_size_pk" PRIMARY KEY("sku","size")
);
--> statement-breakpoint
CREATE TABLE "catalog"."product_history" (
	"id" bigint PRIMARY KEY DEFAULT nextval('catalog_internal.change_positions') NOT NULL,
	"sku" text NOT NULL,
	"field" text NOT NULL,
	"old_value" text,
	"new_value" text,
	"observed_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog"."products" (
	"sku" text PRIMARY KEY NOT NULL,
	"name" text,
	"model" text,
	"brand" text,
	"gender_size" text,
	"size_type" text,
	"category" text,
	"size_map_size_type" text,
	"product" jsonb NOT NULL,
	"refreshed_at" timestamp with time zone NOT NULL,
	"changed_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog"."skus" (
	"sku" text PRIMARY KEY NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"price_source" text,
	"hash" text,
	"sizes" integer,
	"in_manifest" boolean NOT NULL,
	"updated_at" timestamp with time zone,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"priced_at" timestamp with time zone,
	"removed_at" timestamp with time zone,
	"asked_at" timestamp with time zone,
	"first_priced_at" timestamp with time zone,
	"reported_at" timestamp with time zone,
	"hash_before_live" text,
	CONSTRAINT "skus_state" CHECK ("catalog"."skus"."state" in ('pending', 'priced', 'not_found', 'removed')),
	CONSTRAINT "skus_price_source" CHECK ("catalog"."skus"."price_source" in ('snapshot', 'live'))
);
--> statement-breakpoint
CREATE TABLE "catalog"."watchlist" (
	"sku" text PRIMARY KEY NOT NULL,
	"weight" real DEFAULT 1 NOT NULL,
	"note" text,
	CONSTRAINT "watchlist_weight" CHECK ("catalog"."watchlist"."weight" > 0 and "catalog"."watchlist"."weight" < 'Infinity'),
	CONSTRAINT "watchlist_sku" CHECK (length("catalog"."watchlist"."sku") between 1 and 512)
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."catalog_counts" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"counted_at" timestamp with time zone NOT NULL,
	"counted_in_ms" double precision NOT NULL,
	"counts" jsonb NOT NULL,
	CONSTRAINT "catalog_counts_one_row" CHECK ("catalog_internal"."catalog_counts"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."delta_audit" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"since" timestamp with time zone DEFAULT now() NOT NULL,
	"confirmed" bigint DEFAULT 0 NOT NULL,
	"unchanged" bigint DEFAULT 0 NOT NULL,
	"seen_first" bigint DEFAULT 0 NOT NULL,
	"seen_first_seconds" double precision DEFAULT 0 NOT NULL,
	"never_reported" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "delta_audit_one_row" CHECK ("catalog_internal"."delta_audit"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."due" (
	"sku" text PRIMARY KEY NOT NULL,
	"lane" smallint NOT NULL,
	"reason" text NOT NULL,
	"live" boolean DEFAULT false NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	"generation" integer DEFAULT 0 NOT NULL,
	"claim" bigint,
	"held_until" timestamp with time zone,
	"deferrals" integer DEFAULT 0 NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"rank" real DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."history_milestones" (
	"position" bigint PRIMARY KEY NOT NULL,
	"at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."live_calls" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."live_calls_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"called_at" timestamp with time zone NOT NULL,
	"computed" integer NOT NULL,
	"deferred" integer NOT NULL,
	"snapshot_asked" integer DEFAULT 0 NOT NULL,
	"snapshot_deferred" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."live_plan" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"refresh_threshold" double precision,
	"max_interval_minutes" double precision,
	"early_minutes" double precision,
	"solved_at" timestamp with time zone,
	"ceiling_per_minute" double precision,
	"ceiling_at" timestamp with time zone,
	"incident_since" timestamp with time zone,
	"incident_because" text,
	"incident_tried_at" timestamp with time zone,
	CONSTRAINT "live_plan_one_row" CHECK ("catalog_internal"."live_plan"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."live_rates" (
	"sku" text PRIMARY KEY NOT NULL,
	"alpha" double precision NOT NULL,
	"beta" double precision NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."pace" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"ceiling" double precision NOT NULL,
	"raised_at" timestamp with time zone NOT NULL,
	"backoff_until" timestamp with time zone,
	"half_open_sent_at" timestamp with time zone,
	"episodes" integer DEFAULT 0 NOT NULL,
	"refusal" text,
	"refused_since" timestamp with time zone,
	"refused_at" timestamp with time zone,
	"occupancy" integer,
	"resume_at" double precision,
	CONSTRAINT "pace_one_row" CHECK ("catalog_internal"."pace"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."pace_sends" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."pace_sends_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"sent_at" timestamp with time zone NOT NULL,
	"lane" text NOT NULL,
	"other_user" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."quarantine" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."quarantine_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"source" text NOT NULL,
	"reason" text NOT NULL,
	"sku" text,
	"sample" text,
	"seen_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."settings" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"live_interval" double precision DEFAULT 1800 NOT NULL,
	"sweep_interval" double precision DEFAULT 86400 NOT NULL,
	"metadata_interval" double precision DEFAULT 604800 NOT NULL,
	"catalog_stale_after" double precision DEFAULT 86400 NOT NULL,
	"rate_limit" integer DEFAULT 200 NOT NULL,
	"rate_window" double precision DEFAULT 60 NOT NULL,
	"rate_share" integer DEFAULT 120 NOT NULL,
	"rate_floor" integer DEFAULT 40 NOT NULL,
	"delta_interval" double precision DEFAULT 300 NOT NULL,
	"bulk_max_skus" integer DEFAULT 100 NOT NULL,
	"bulk_live_budget" integer DEFAULT 5 NOT NULL,
	CONSTRAINT "settings_one_row" CHECK ("catalog_internal"."settings"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."sync" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"snapshot_id" text,
	"snapshot_generated_at" timestamp with time zone,
	"manifest_applied_at" timestamp with time zone,
	"manifest_lines" integer,
	"delta_checked_at" timestamp with time zone,
	"snapshot_moved_at" timestamp with time zone,
	"catalog_checked_at" timestamp with time zone,
	"live_priced_sku_count" integer,
	"catalog_fault" text,
	"chain_broken_at" timestamp with time zone,
	"chain_breaks" integer DEFAULT 0 NOT NULL,
	"rejected_snapshot_id" text,
	"manifest_refused" text,
	"shrink_confirmed" boolean DEFAULT false NOT NULL,
	"live_budget" real,
	"caught_up" boolean DEFAULT false NOT NULL,
	"token_at" timestamp with time zone,
	"built_after" timestamp with time zone,
	CONSTRAINT "sync_one_row" CHECK ("catalog_internal"."sync"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."tasks" (
	"task" text PRIMARY KEY NOT NULL,
	"next_at" timestamp with time zone DEFAULT now() NOT NULL,
	"run" bigint,
	"running_until" timestamp with time zone,
	"started_at" timestamp with time zone,
	"finished_at" timestamp with time zone,
	"succeeded_at" timestamp with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	"outcome" text,
	"progress" jsonb
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."unreported_moves" (
	"sku" text PRIMARY KEY NOT NULL,
	"seen_at" timestamp with time zone NOT NULL,
	"moves" integer DEFAULT 1 NOT NULL,
	"reported_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."watch_changes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."watch_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"transaction" text NOT NULL,
	"added" boolean NOT NULL,
	"skus" text[]
);
--> statement-breakpoint
CREATE INDEX "price_history_sku" ON "catalog"."price_history" USING btree ("sku","id");--> statement-breakpoint
CREATE INDEX "price_history_observed_at" ON "catalog"."price_history" USING brin ("observed_at");--> statement-breakpoint
CREATE INDEX "product_history_sku" ON "catalog"."product_history" USING btree ("sku","id");--> statement-breakpoint
CREATE INDEX "products_brand_model" ON "catalog"."products" USING btree (left("brand", 200),left("model", 200));--> statement-breakpoint
CREATE INDEX "due_claim" ON "catalog_internal"."due" USING btree ("live","lane","due_at") WHERE held_until is null;--> statement-breakpoint
CREATE INDEX "due_urgent" ON "catalog_internal"."due" USING btree ("live","rank" DESC NULLS FIRST,"due_at") WHERE held_until is null and lane = 1;--> statement-breakpoint
CREATE INDEX "due_live_claims" ON "catalog_internal"."due" USING btree ("claim") WHERE claim is not null and live;--> statement-breakpoint
CREATE INDEX "due_held" ON "catalog_internal"."due" USING btree ("held_until") WHERE held_until is not null;--> statement-breakpoint
CREATE INDEX "live_calls_called_at" ON "catalog_internal"."live_calls" USING btree ("called_at");--> statement-breakpoint
CREATE INDEX "pace_sends_sent_at" ON "catalog_internal"."pace_sends" USING btree ("sent_at");
--> statement-breakpoint
-- Rows that the tables begin with -------------------------------------------------------------------------------------

-- One row each. The row of pace is made by the pacer, which knows the limits.
INSERT INTO catalog_internal.sync DEFAULT VALUES;
INSERT INTO catalog_internal.settings DEFAULT VALUES;
INSERT INTO catalog_internal.live_plan DEFAULT VALUES;
INSERT INTO catalog_internal.delta_audit DEFAULT VALUES;
INSERT INTO catalog_internal.tasks (task)
VALUES ('manifest'), ('delta'), ('catalog-check'), ('reprice'), ('metadata'), ('maintenance'), ('live-plan');
--> statement-breakpoint
-- Storage -------------------------------------------------------------------------------------------------------------

-- Room in the pages for heap-only updates where an answer only moves timestamps, and early vacuums on the tables that churn.
ALTER TABLE catalog.skus SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE catalog.products SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE catalog.prices SET (fillfactor = 95, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE catalog_internal.due SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE catalog_internal.live_rates SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE catalog_internal.live_calls SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE catalog_internal.pace_sends SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE catalog_internal.pace SET (fillfactor = 10);
ALTER TABLE catalog_internal.tasks SET (fillfactor = 10);
--> statement-breakpoint
-- What the tables mean to a seller ------------------------------------------------------------------------------------

COMMENT ON SCHEMA catalog IS 'The mirrored catalog: read it, and write to watchlist. Everything else is written by catalog-mirror.';
COMMENT ON SCHEMA catalog_internal IS 'What catalog-mirror keeps for itself. Not for queries: it changes without notice.';

COMMENT ON TABLE catalog.price_history IS 'Every observed price move, append-only; kept for HISTORY_RETENTION. No rows for the first observation of a SKU. old_price null: the size appeared; new_price null: it went.';
COMMENT ON COLUMN catalog.price_history.id IS 'Position among all changes (catalog.changes), in the order of the commits.';
COMMENT ON COLUMN catalog.price_history.sku IS 'SKU in catalog.skus.';
COMMENT ON COLUMN catalog.price_history.size IS 'Size key as the partner names it.';
COMMENT ON COLUMN catalog.price_history.old_price IS 'Whole baht before; null: the size appeared, or its entry carried no readable price.';
COMMENT ON COLUMN catalog.price_history.new_price IS 'Whole baht after; null: the size went (also with the whole SKU), or its entry carries no readable price.';
COMMENT ON COLUMN catalog.price_history.observed_at IS 'When the request was sent whose answer showed the move; for a removal, when the delta reported it.';
COMMENT ON COLUMN catalog.price_history.size_type_changed IS 'The same answer corrected size_map.size_type: the size means something else now, and this is no move of the market.';

COMMENT ON TABLE catalog.prices IS 'Lowest price of each size of each priced SKU. SKUs that are not_found or removed have no rows here.';
COMMENT ON COLUMN catalog.prices.sku IS 'SKU in catalog.skus.';
COMMENT ON COLUMN catalog.prices.size IS 'Size key as the partner names it; products.size_map_size_type says what it means.';
COMMENT ON COLUMN catalog.prices.price IS 'Whole baht (THB); null where the partner''s entry carries no readable price.';
COMMENT ON COLUMN catalog.prices.entry IS 'The partner''s size_map entry as it came; null where it is just the number in price.';
COMMENT ON COLUMN catalog.prices.changed_at IS 'When the mirror saw the price change (or the size appear).';

COMMENT ON TABLE catalog.product_history IS 'Every observed metadata change, append-only, kept for good; field names the column of catalog.products. size_map_size_type: every size of the SKU means something else from here on.';
COMMENT ON COLUMN catalog.product_history.id IS 'Position among all changes (catalog.changes), in the order of the commits.';
COMMENT ON COLUMN catalog.product_history.sku IS 'SKU in catalog.skus.';
COMMENT ON COLUMN catalog.product_history.field IS 'Column of catalog.products that changed; product: members of the product object that have no column.';
COMMENT ON COLUMN catalog.product_history.old_value IS 'Value before, as text.';
COMMENT ON COLUMN catalog.product_history.new_value IS 'Value after, as text.';
COMMENT ON COLUMN catalog.product_history.observed_at IS 'When the request was sent whose answer showed the change.';

COMMENT ON TABLE catalog.products IS 'Product metadata of every SKU that was ever priced. Kept when the SKU goes.';
COMMENT ON COLUMN catalog.products.sku IS 'SKU in catalog.skus.';
COMMENT ON COLUMN catalog.products.name IS 'product.name.';
COMMENT ON COLUMN catalog.products.model IS 'product.model.';
COMMENT ON COLUMN catalog.products.brand IS 'product.brand.';
COMMENT ON COLUMN catalog.products.gender_size IS 'product.gender_size.';
COMMENT ON COLUMN catalog.products.size_type IS 'product.size_type.';
COMMENT ON COLUMN catalog.products.category IS 'product.category.';
COMMENT ON COLUMN catalog.products.size_map_size_type IS 'size_map.size_type: what the size keys in catalog.prices mean. A correction changes the meaning of every size without any price moving.';
COMMENT ON COLUMN catalog.products.product IS 'The partner''s product object as it came.';
COMMENT ON COLUMN catalog.products.refreshed_at IS 'When the metadata was last read.';
COMMENT ON COLUMN catalog.products.changed_at IS 'When the mirror last saw any of it change.';

COMMENT ON TABLE catalog.skus IS 'Every SKU ever seen, one row each, with what the catalog says of it.';
COMMENT ON COLUMN catalog.skus.sku IS 'The partner''s SKU, spelled exactly as the partner spells it.';
COMMENT ON COLUMN catalog.skus.state IS 'pending: not priced yet; priced: the partner answered with a record (perhaps without sizes); not_found: the price routes say 0009; removed: the delta reported it removed.';
COMMENT ON COLUMN catalog.skus.price_source IS 'snapshot: the delta reports its price moves; live: it does not, the mirror refreshes by itself; null: unknown.';
COMMENT ON COLUMN catalog.skus.hash IS 'Fingerprint from the manifest: compare for equality only. Null for live SKUs, and from the moment a delta reports the SKU until the next manifest.';
COMMENT ON COLUMN catalog.skus.sizes IS 'Number of sizes that the manifest states.';
COMMENT ON COLUMN catalog.skus.in_manifest IS 'Listed by the newest applied manifest, as corrected by the deltas since. False does not mean that the SKU does not exist.';
COMMENT ON COLUMN catalog.skus.updated_at IS 'updated_at of the manifest line.';
COMMENT ON COLUMN catalog.skus.first_seen_at IS 'When the mirror first heard of the SKU.';
COMMENT ON COLUMN catalog.skus.priced_at IS 'When the partner last answered for this SKU: with a record or with 0009.';
COMMENT ON COLUMN catalog.skus.removed_at IS 'When the delta reported the SKU removed; null again once the price routes answer with a record.';
COMMENT ON COLUMN catalog.skus.asked_at IS 'When the request behind priced_at was sent.';
COMMENT ON COLUMN catalog.skus.first_priced_at IS 'When the partner first answered with a record. price_history begins after that.';
COMMENT ON COLUMN catalog.skus.reported_at IS 'When a delta last reported the SKU.';
COMMENT ON COLUMN catalog.skus.hash_before_live IS 'The hash before the SKU turned live-priced, while no refresh has found its prices moved since.';

COMMENT ON TABLE catalog.watchlist IS 'Yours: SKUs that matter most to you. Inserting one gets it refreshed next, whether or not the catalog lists it.';
COMMENT ON COLUMN catalog.watchlist.sku IS 'SKU to watch, spelled exactly as the partner spells it, 1 to 512 characters.';
COMMENT ON COLUMN catalog.watchlist.weight IS 'How much more than an ordinary SKU (1) this one matters: what is urgent is served in its order, and where live refreshes are scarce, more go to what weighs more. A new weight holds from its commit on.';
COMMENT ON COLUMN catalog.watchlist.note IS 'Free text of your own.';
--> statement-breakpoint
-- Roles and rights ----------------------------------------------------------------------------------------------------

-- Roles are shared by the whole cluster: another mirror may have made them, at this very moment even, and a daemon without the
-- right to create roles leaves them to the administrator. The default privileges make every table and view to come readable.
DO $$
DECLARE role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['catalog_reader', 'catalog_watcher'] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
    EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
    END;
  END LOOP;
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA catalog TO catalog_reader;
    GRANT SELECT ON ALL TABLES IN SCHEMA catalog TO catalog_reader;
    ALTER DEFAULT PRIVILEGES IN SCHEMA catalog GRANT SELECT ON TABLES TO catalog_reader;
  END IF;
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA catalog TO catalog_watcher;
    GRANT SELECT, INSERT, UPDATE, DELETE ON catalog.watchlist TO catalog_watcher;
  END IF;
END
$$;
--> statement-breakpoint
-- Functions and views: the due ledger ---------------------------------------------------------------------------------

-- The lanes of the due ledger as people read them, by their numbers: the first is served first. LANES in
-- src/store/due.ts has the same order, and lane_of the reasons of each.
CREATE OR REPLACE FUNCTION catalog_internal.lane_names() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY['changed', 'live', 'new', 'error', 'metadata', 'sweep']
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.lane_names() TO PUBLIC;
--> statement-breakpoint
-- The lane that a reason is served in; the planner (src/sync/reprice/plan.ts) serves lower numbers first.
CREATE OR REPLACE FUNCTION catalog_internal.lane_of(reason text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE reason
    WHEN 'changed' THEN 1 WHEN 'watched' THEN 1 WHEN 'refresh' THEN 1
    WHEN 'live' THEN 2
    WHEN 'new' THEN 3 WHEN 'absent' THEN 3 WHEN 'removed' THEN 3
    WHEN 'error' THEN 4
    WHEN 'metadata' THEN 5
    ELSE 6
  END::smallint
$$;

REVOKE ALL ON FUNCTION catalog_internal.lane_of(text) FROM PUBLIC;
--> statement-breakpoint
-- Every transaction locks the SKUs that exist, in order of sku, and then inserts those that are new. Two that insert
-- at once could still wait for each other, where one is about to insert what the other has inserted: so they 
-- alternate. Held to the end of the transaction, and taken before any row of skus.
CREATE OR REPLACE FUNCTION catalog_internal.lock_new_skus() RETURNS void
LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtext('catalog_internal.skus'))
$$;

REVOKE ALL ON FUNCTION catalog_internal.lock_new_skus() FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, while a SKU that waits
-- after an error is tried again at once. counts_as_live null leaves the live flag as it is.
-- The rank is the weight in catalog.watchlist as it stands once the rows are locked, because locking them may have
-- waited for a seller's commit. Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql AS $$
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
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND d.failures > 0 THEN NULL ELSE d.held_until END
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

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
--> statement-breakpoint
-- Functions and views: the watchlist ----------------------------------------------------------------------------------

-- A seller's transaction may stay open for long after its INSERT. Marking locks the SKU and its row in the ledger,
-- and these locks hold up deltas and answers; so the statement is only recorded here, and watch_committed marks when
-- the transaction commits. SECURITY DEFINER, because catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.watch_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO catalog_internal.watch_changes (transaction, added, skus)
  SELECT pg_current_xact_id()::text, true, array_agg(sku) FROM added HAVING count(*) > 0;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watch_added() FROM PUBLIC;

CREATE OR REPLACE TRIGGER watch_added AFTER INSERT ON catalog.watchlist
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_added();
--> statement-breakpoint
-- Records what else may happen to the watchlist, as watch_added does for an INSERT. An UPDATE that changes the sku is
-- a DELETE of one row and an INSERT of another.
CREATE OR REPLACE FUNCTION catalog_internal.watch_changed() RETURNS trigger
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

REVOKE ALL ON FUNCTION catalog_internal.watch_changed() FROM PUBLIC;

CREATE OR REPLACE TRIGGER watch_updated AFTER UPDATE ON catalog.watchlist
REFERENCING OLD TABLE AS was NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
CREATE OR REPLACE TRIGGER watch_deleted AFTER DELETE ON catalog.watchlist
REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
CREATE OR REPLACE TRIGGER watch_emptied AFTER TRUNCATE ON catalog.watchlist
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
--> statement-breakpoint
-- At the commit, once for all that the transaction did to the watchlist: the first of its recorded rows takes them
-- all. SKUs that were inserted and are still watched are marked and mirrored, whether or not a manifest lists them. A
-- SKU whose weight changed, or that is watched no longer, is not marked for that; it gets its new rank at once where
-- it is urgent, and with its next mark elsewhere.
-- Locks are taken in the order of everyone here: lock_new_skus, known SKUs in order of sku, new SKUs, the ledger in
-- order of sku. Every row of the ledger is locked before its rank is compared, so that a concurrent mark has either
-- seen this commit or is seen by it.
CREATE OR REPLACE FUNCTION catalog_internal.watch_committed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  marked text[];
  others text[];
  emptied boolean;
BEGIN
  WITH mine AS (
    DELETE FROM catalog_internal.watch_changes WHERE transaction = pg_current_xact_id()::text RETURNING added, skus
  ), named AS (
    SELECT sku, bool_or(added) AS added FROM mine, unnest(skus) AS sku GROUP BY sku
  ), present AS (
    SELECT n.sku, n.added AND w.sku IS NOT NULL AS to_mark
    FROM named n LEFT JOIN catalog.watchlist w ON w.sku = n.sku
  )
  SELECT (SELECT array_agg(sku) FROM present WHERE to_mark),
         (SELECT array_agg(sku) FROM present WHERE NOT to_mark),
         (SELECT bool_or(skus IS NULL) FROM mine)
    INTO marked, others, emptied;
  IF emptied THEN
    others := others || (SELECT array_agg(sku) FROM catalog_internal.due WHERE lane = 1 AND rank <> 1);
  END IF;
  IF marked IS NOT NULL THEN
    IF EXISTS (SELECT FROM unnest(marked) AS m(sku) WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = m.sku)) THEN
      PERFORM catalog_internal.lock_new_skus();
    END IF;
    PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR UPDATE;
    INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT DO NOTHING;
  END IF;
  IF others IS NOT NULL THEN
    PERFORM FROM catalog_internal.due WHERE sku = ANY (marked || others) ORDER BY sku FOR UPDATE;
    UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
    FROM unnest(others) AS o(sku) LEFT JOIN catalog.watchlist w USING (sku)
    WHERE d.sku = o.sku AND d.lane = 1 AND d.rank <> coalesce(w.weight, 1);
  END IF;
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watch_committed() FROM PUBLIC;

-- Postgres has no CREATE OR REPLACE for a constraint trigger.
DROP TRIGGER IF EXISTS watch_committed ON catalog_internal.watch_changes;
CREATE CONSTRAINT TRIGGER watch_committed AFTER INSERT ON catalog_internal.watch_changes
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION catalog_internal.watch_committed();
--> statement-breakpoint
-- Functions and views: histories and their partitions -----------------------------------------------------------------

-- A transaction that writes history takes this lock before it draws a position, and holds it until it ends: so
-- positions come in the order of the commits, and a reader needs to remember one number only. Other ways, and why
-- not: src/store/changes.ts.
CREATE OR REPLACE FUNCTION catalog_internal.lock_changes() RETURNS void
LANGUAGE sql AS $$
  LOCK TABLE catalog_internal.history_milestones IN EXCLUSIVE MODE
$$;

REVOKE ALL ON FUNCTION catalog_internal.lock_changes() FROM PUBLIC;
--> statement-breakpoint
-- For each INSERT, whoever sends it: also a daemon of an earlier version that still runs beside this one, or a
-- person. Before the statement, so before the defaults of its first row draw a position.
CREATE OR REPLACE FUNCTION catalog_internal.history_is_written() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM catalog_internal.lock_changes();
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_is_written() FROM PUBLIC;

CREATE OR REPLACE TRIGGER in_order BEFORE INSERT ON catalog.price_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();
CREATE OR REPLACE TRIGGER in_order BEFORE INSERT ON catalog.product_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();
--> statement-breakpoint
-- Partition n of price_history holds the positions from 5,000,000 n on. Makes the one that is being written and the
-- next, where they are missing; under the lock, because two sessions may find one missing at once. Each is made as a
-- table of its own and then attached, which locks nobody out.
CREATE OR REPLACE FUNCTION catalog_internal.add_history_chunks() RETURNS void
LANGUAGE plpgsql AS $$
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

REVOKE ALL ON FUNCTION catalog_internal.add_history_chunks() FROM PUBLIC;
--> statement-breakpoint
-- Drops the oldest partition of price_history where all of it is older than so many seconds, never the one that is
-- being written. One a transaction: setval on the last dropped position is not rolled back when the rest is.
-- 'in use' means that somebody is reading the partition: it is dropped another time. The lock timeout is short,
-- because nobody else can read while this waits for the lock.
CREATE OR REPLACE FUNCTION catalog_internal.drop_history_chunk(kept_seconds double precision) RETURNS text
LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
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

REVOKE ALL ON FUNCTION catalog_internal.drop_history_chunk(double precision) FROM PUBLIC;
--> statement-breakpoint
-- Everything observed since a moment has a greater position than this, so a query for the moves of a SKU since then
-- leaves all older partitions alone. The hour allows for a clock that was set back.
CREATE OR REPLACE FUNCTION catalog_internal.position_before(moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(max(position), -1) FROM catalog_internal.history_milestones WHERE at < moment - interval '1 hour'
$$;

REVOKE ALL ON FUNCTION catalog_internal.position_before(timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- position_before of sync.built_after. Without an argument, so that Postgres can evaluate it before it opens any
-- partition.
CREATE OR REPLACE FUNCTION catalog_internal.position_before_built() RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT catalog_internal.position_before(built_after) FROM catalog_internal.sync
$$;

REVOKE ALL ON FUNCTION catalog_internal.position_before_built() FROM PUBLIC;
--> statement-breakpoint
-- In how many answers of the last three days a price of the SKU had moved, and how many minutes that covers (since
-- its first price, three days at most): what its history says of its rate of change when it becomes live. The
-- condition on id leaves older partitions unopened.
CREATE OR REPLACE FUNCTION catalog_internal.past_moves(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE sql STABLE AS $$
  SELECT count(DISTINCT h.observed_at)::integer,
         CASE WHEN first_priced_at IS NULL THEN 0
           ELSE extract(epoch FROM least(now() - first_priced_at, interval '3 days')) / 60
         END
  FROM catalog.price_history h
  WHERE h.sku = of_sku AND h.observed_at > now() - interval '3 days'
    AND h.id > catalog_internal.position_before(now() - interval '3 days')
$$;

REVOKE ALL ON FUNCTION catalog_internal.past_moves(text, timestamptz) FROM PUBLIC;
--> statement-breakpoint
SELECT catalog_internal.add_history_chunks();
--> statement-breakpoint
-- Functions and views: the feed of changes ----------------------------------------------------------------------------

-- The position from which a reader gets everything that is committed from now on. The newest row that this snapshot
-- sees, not the newest position drawn: what is being committed right now comes after it.
CREATE OR REPLACE FUNCTION catalog.changes_position() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT greatest(
    (SELECT id FROM catalog.price_history ORDER BY id DESC LIMIT 1),
    (SELECT id FROM catalog.product_history ORDER BY id DESC LIMIT 1),
    (SELECT last_value FROM catalog_internal.dropped_positions))
$$;

REVOKE ALL ON FUNCTION catalog.changes_position() FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_position() TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_position() IS 'The position to follow changes from now on from. Take it before you read the tables.';
--> statement-breakpoint
-- The newest position that was dropped. A sequence holds it, because every snapshot sees the same of it.
CREATE OR REPLACE FUNCTION catalog.changes_oldest() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT last_value FROM catalog_internal.dropped_positions
$$;

REVOKE ALL ON FUNCTION catalog.changes_oldest() FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_oldest() TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_oldest() IS 'The oldest position that catalog.changes takes.';
--> statement-breakpoint
-- Reads first and judges then: from the reading on nothing can be dropped until the transaction ends, and what was
-- dropped before is said by a sequence, which is the same in every snapshot.
CREATE OR REPLACE FUNCTION catalog.changes(after bigint, most integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  oldest bigint;
  drawn bigint;
BEGIN
  IF after IS NULL OR most IS NULL OR most < 1 THEN
    RAISE EXCEPTION 'catalog.changes needs a position and a number of changes from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY
    SELECT * FROM (
      (SELECT h.id, 'price', h.sku, h.size, h.old_price, h.new_price, NULL::text, NULL::text, NULL::text, h.size_type_changed, h.observed_at
       FROM catalog.price_history h WHERE h.id > changes.after ORDER BY h.id LIMIT changes.most)
      UNION ALL
      (SELECT h.id, 'product', h.sku, NULL, NULL, NULL, h.field, h.old_value, h.new_value, h.field = 'size_map_size_type', h.observed_at
       FROM catalog.product_history h WHERE h.id > changes.after ORDER BY h.id LIMIT changes.most)
    ) all_kinds ORDER BY 1 LIMIT changes.most;
  SELECT last_value INTO oldest FROM catalog_internal.dropped_positions;
  SELECT last_value INTO drawn FROM catalog_internal.change_positions;
  IF after < oldest THEN
    RAISE EXCEPTION 'the changes after position % are no longer kept: the oldest position to go on from is %', after, oldest
      USING ERRCODE = 'CM001', HINT = 'Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog.changes(bigint, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes(bigint, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes(bigint, integer) IS 'Price and product changes after a position, in the order of their commits, at most so many. Remember the last position. Fails with SQLSTATE CM001 where changes after the position are no longer kept, or the position is none of this database.';
--> statement-breakpoint
-- Functions and views: pace and state ---------------------------------------------------------------------------------

-- 'none' before the first baseline; 'stale' while the catalog routes cannot be trusted to report changes; else 'ok'.
-- A token that moved proves that the partner's catalog builder works, until the manifest route is checked again.
-- SECURITY DEFINER, because a view reads its tables as its owner but calls its functions as its reader, who may not
-- read the settings. PL/pgSQL plans its statement once a session, and sku_trust calls it in every query. It only
-- reads, so queries may use parallel workers.
CREATE OR REPLACE FUNCTION catalog_internal.catalog_state(s catalog_internal.sync) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE
    WHEN s.manifest_applied_at IS NULL THEN 'none'
    WHEN s.catalog_fault IS NOT NULL THEN 'stale'
    WHEN s.chain_broken_at IS NOT NULL AND s.manifest_refused IS NOT NULL THEN 'stale'
    WHEN greatest(s.snapshot_generated_at, s.snapshot_moved_at)
         < now() - make_interval(secs => (SELECT catalog_stale_after FROM catalog_internal.settings)) THEN 'stale'
    ELSE 'ok'
  END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.catalog_state(catalog_internal.sync) TO PUBLIC;
--> statement-breakpoint
-- Requests a minute that the pacer allows now: what it resumed with, grown since (src/pace/policy.ts, ceilingAt).
CREATE OR REPLACE FUNCTION catalog_internal.present_ceiling(p catalog_internal.pace) RETURNS real
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (least(
      greatest(1, floor(s.rate_share * s.rate_window / (s.rate_window + least(0.5, s.rate_window / 20))) - 1),
      greatest(1, p.ceiling) + greatest(5, s.rate_share / 24.0)
        * greatest(0, extract(epoch FROM clock_timestamp() - p.raised_at)) / s.rate_window
    ) * 60 / s.rate_window)::real
  FROM catalog_internal.settings s WHERE p.ceiling IS NOT NULL
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.present_ceiling(catalog_internal.pace) TO PUBLIC;
--> statement-breakpoint
-- For the account's other services: permission to send one request with the account's api_key, counted in the same
-- log as the mirror's requests. They take precedence: the mirror gives way down to rate_floor (src/pace/policy.ts,
-- ownMost). The lock is the pacer's.
CREATE OR REPLACE FUNCTION catalog.take_request(lane text DEFAULT 'other') RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s catalog_internal.settings;
  p catalog_internal.pace;
  moment timestamptz;
  span interval;
  allowed integer;
  total integer;
  foreigners integer;
  oldest timestamptz;
  until timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('catalog_internal.pace'));
  -- The mirror's clock counts whole milliseconds.
  moment := date_trunc('milliseconds', clock_timestamp());
  SELECT * INTO s FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  -- After a refusal everyone backs off; then one half-open request goes out, and it is the mirror's. A half-open request nobody sends is not waited for.
  IF p.backoff_until > moment THEN
    RETURN ceil(extract(epoch FROM p.backoff_until - moment) * 1000);
  ELSIF p.backoff_until > moment - interval '2 minutes' THEN
    RETURN 1000;
  END IF;
  span := make_interval(secs => s.rate_window + least(0.5, s.rate_window / 20));
  allowed := greatest(1, floor(s.rate_limit * s.rate_window / extract(epoch FROM span))::integer - 1);
  SELECT count(*), count(*) FILTER (WHERE other_user), min(sent_at), min(sent_at) FILTER (WHERE other_user)
    INTO total, foreigners, oldest, until
    FROM catalog_internal.pace_sends WHERE sent_at > moment - span;
  IF total >= allowed THEN
    RETURN greatest(1, ceil(extract(epoch FROM oldest + span - moment) * 1000));
  ELSIF foreigners >= greatest(1, allowed - s.rate_floor) THEN
    RETURN greatest(1, ceil(extract(epoch FROM until + span - moment) * 1000));
  END IF;
  INSERT INTO catalog_internal.pace_sends (sent_at, lane, other_user) VALUES (moment, take_request.lane, true);
  RETURN 0;
END
$$;

REVOKE ALL ON FUNCTION catalog.take_request(text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.take_request(text) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.take_request(text) IS 'Leave to send one request to the partner: 0 = send it now, it is counted; else ask again after so many milliseconds. lane is a name of your choice.';
--> statement-breakpoint
-- One row. The pacer makes its own row when it first starts, hence the LEFT JOIN.
CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus, k.pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p) AS requests_per_minute,
       CASE WHEN p.backoff_until > now() THEN p.backoff_until END AS backing_off_until,
       catalog_internal.catalog_state(s) AS catalog_state,
       l.incident_since,
       p.refusal, p.refused_since, coalesce(p.episodes, 0) AS refusals
FROM catalog_internal.sync s
CROSS JOIN catalog_internal.live_plan l
LEFT JOIN catalog_internal.pace p ON true
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= now() AND (deferrals = 0 OR held_until IS NULL OR claim IS NOT NULL OR held_until <= now())) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= now()) AS oldest_due_at
  FROM catalog_internal.due
) d;

COMMENT ON VIEW catalog.sync_status IS 'How the mirror stands, one row.';
COMMENT ON COLUMN catalog.sync_status.snapshot_id IS 'Snapshot that the mirror follows: the delta is asked from there.';
COMMENT ON COLUMN catalog.sync_status.snapshot_generated_at IS 'Build time of the newest snapshot that the manifest route told of.';
COMMENT ON COLUMN catalog.sync_status.manifest_applied_at IS 'When a manifest was last applied (baseline).';
COMMENT ON COLUMN catalog.sync_status.delta_checked_at IS 'When the delta was last asked for and applied.';
COMMENT ON COLUMN catalog.sync_status.skus IS 'SKUs in the mirror, in any state.';
COMMENT ON COLUMN catalog.sync_status.live_skus IS 'SKUs of price_source live.';
COMMENT ON COLUMN catalog.sync_status.pending_skus IS 'SKUs not priced yet.';
COMMENT ON COLUMN catalog.sync_status.due_skus IS 'SKUs due now; a deferred SKU counts once its wait is over.';
COMMENT ON COLUMN catalog.sync_status.deferred_skus IS 'SKUs that the partner deferred, waiting or due again.';
COMMENT ON COLUMN catalog.sync_status.oldest_due_at IS 'Since when the SKU that has been due for longest is due; null: nothing is due.';
COMMENT ON COLUMN catalog.sync_status.requests_per_minute IS 'Requests a minute that the pacer allows the mirror at present.';
COMMENT ON COLUMN catalog.sync_status.backing_off_until IS 'Until when nobody sends after a refusal; null: no back-off.';
COMMENT ON COLUMN catalog.sync_status.catalog_state IS 'ok; stale: the catalog routes cannot be trusted to report changes, SKUs are re-priced by age; none: no baseline yet.';
COMMENT ON COLUMN catalog.sync_status.incident_since IS 'Since when the whole catalog is taken for live-priced: prices age, and are refreshed by worth with all there is; null: no incident.';
COMMENT ON COLUMN catalog.sync_status.refusal IS 'How the partner refused the last request: throttled-or-forbidden (403), unauthorised (401), authorizer-fault (the authorizer''s 500), account-not-configured; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refused_since IS 'When the first of the present refusals came; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refusals IS 'Refusals in a row, with nothing let through in between.';
--> statement-breakpoint
-- The counts that src/store/audit.ts keeps, as a seller reads them.
CREATE OR REPLACE VIEW catalog.delta_audit AS
SELECT a.since,
       a.confirmed AS reports_confirmed,
       a.unchanged AS reports_unchanged,
       a.seen_first AS moves_seen_first,
       a.seen_first_seconds / nullif(a.seen_first, 0) AS seen_first_by_seconds,
       a.never_reported AS moves_never_reported,
       (SELECT count(*) FROM catalog_internal.unreported_moves WHERE reported_at IS NULL) AS moves_waiting
FROM catalog_internal.delta_audit a;

COMMENT ON VIEW catalog.delta_audit IS 'How well the delta and the mirror''s own refreshes agree on snapshot-priced SKUs, counted since `since`. One row.';
COMMENT ON COLUMN catalog.delta_audit.since IS 'Since when is counted.';
COMMENT ON COLUMN catalog.delta_audit.reports_confirmed IS 'SKUs reported as changed whose next refresh found a price moved.';
COMMENT ON COLUMN catalog.delta_audit.reports_unchanged IS 'SKUs reported as changed whose next refresh found nothing moved. Not where the mirror cannot know: a first price or a move seen since the snapshot that the report starts from, or a change of cohort.';
COMMENT ON COLUMN catalog.delta_audit.moves_seen_first IS 'Moves that a refresh of the mirror''s own (sweep, spare slots, metadata) found before the delta reported the SKU.';
COMMENT ON COLUMN catalog.delta_audit.seen_first_by_seconds IS 'How long before the report these were seen, on average.';
COMMENT ON COLUMN catalog.delta_audit.moves_never_reported IS 'Moves that a refresh found, that a later refresh found still there, and that no delta reported although a snapshot was built in between. Should stay near 0; a price that swings to and fro between refreshes can be among them.';
COMMENT ON COLUMN catalog.delta_audit.moves_waiting IS 'SKUs on which a refresh found a move that no delta has reported so far.';
--> statement-breakpoint
-- Functions and views: prices and the trust in them -------------------------------------------------------------------

-- Seconds that a snapshot-priced SKU's price may be old: its sweep, or its metadata's age where that is less or there
-- are no sweeps. A single expression, so that the planner puts it in place of the call.
CREATE OR REPLACE FUNCTION catalog_internal.snapshot_target(s catalog_internal.settings) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN s.sweep_interval > 0 THEN least(s.sweep_interval, s.metadata_interval) ELSE s.metadata_interval END
$$;

REVOKE ALL ON FUNCTION catalog_internal.snapshot_target(catalog_internal.settings) FROM PUBLIC;
--> statement-breakpoint
-- Seconds without a checked delta from which it is late: three polls, and half an hour at least. Health, the doubt
-- delta_late and the alert on it go by this. A single expression, as snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.delta_late_after(s catalog_internal.settings) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT greatest(1800, 3 * s.delta_interval)
$$;

REVOKE ALL ON FUNCTION catalog_internal.delta_late_after(catalog_internal.settings) FROM PUBLIC;
--> statement-breakpoint
-- What trust in a price depends on that is the same for all SKUs, computed once a query. PL/pgSQL plans a statement
-- once a session, and planning is most of the cost of reading one SKU. One SELECT a table, because the planner does
-- not know that these tables have one row each, and prepares a join for millions. SECURITY DEFINER: the view calls it
-- as its reader.
CREATE OR REPLACE FUNCTION catalog_internal.trust_terms(
  OUT live_target interval, OUT snapshot_target interval, OUT incident boolean, OUT catalog_doubt text,
  OUT at_work boolean, OUT backoff_until timestamptz
)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  s catalog_internal.sync;
  p catalog_internal.pace;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO s FROM catalog_internal.sync;
  SELECT * INTO p FROM catalog_internal.pace;
  live_target := make_interval(secs => g.live_interval);
  snapshot_target := make_interval(secs => catalog_internal.snapshot_target(g));
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  catalog_doubt := CASE catalog_internal.catalog_state(s)
    WHEN 'none' THEN 'no_baseline'
    WHEN 'stale' THEN 'catalog_stale'
    ELSE CASE WHEN coalesce(s.delta_checked_at, s.manifest_applied_at) < now() - make_interval(secs => catalog_internal.delta_late_after(g))
      THEN 'delta_late' END
  END;
  -- With a daemon there, this task ends every minute.
  at_work := p.refusal IS NULL
    AND coalesce((SELECT finished_at > now() - interval '5 minutes' FROM catalog_internal.tasks WHERE task = 'maintenance'), false);
  backoff_until := CASE WHEN p.backoff_until > now() THEN p.backoff_until END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.trust_terms() TO PUBLIC;
--> statement-breakpoint
-- Seconds of work at the present pace ahead of a refresh that is due now: by the number of its lane, and at the place
-- after the last lane for one that counts as live. As if everything that is at least as urgent went first. Null where
-- the backlog was not counted in the last five minutes.
CREATE OR REPLACE FUNCTION catalog_internal.seconds_ahead() RETURNS float8[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g catalog_internal.settings;
  p catalog_internal.pace;
  backlog jsonb;
  cheap_per_second float8;
  live_per_second float8;
  lanes CONSTANT integer := cardinality(catalog_internal.lane_names());
BEGIN
  SELECT counts -> 'due' INTO backlog FROM catalog_internal.catalog_counts WHERE counted_at > now() - interval '5 minutes';
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  cheap_per_second := g.bulk_max_skus * catalog_internal.present_ceiling(p) / 60;
  live_per_second := least((SELECT ceiling_per_minute FROM catalog_internal.live_plan),
    coalesce((SELECT live_budget FROM catalog_internal.sync), g.bulk_live_budget) * catalog_internal.present_ceiling(p)) / 60;
  RETURN (
    WITH owed AS MATERIALIZED (
      SELECT r ->> 'reason' AS reason, (r ->> 'count')::float8 AS skus FROM jsonb_array_elements(backlog) AS r
    )
    SELECT array_agg(coalesce(CASE
               WHEN lane <= lanes THEN (SELECT sum(skus) FROM owed WHERE reason NOT IN ('live', 'deferred') AND catalog_internal.lane_of(reason) <= lane)
               ELSE (SELECT sum(skus) FROM owed WHERE reason IN ('live', 'deferred'))
             END, 0) / nullif(CASE WHEN lane <= lanes THEN cheap_per_second ELSE live_per_second END, 0) ORDER BY lane)
    FROM generate_series(1, lanes + 1) AS lane WHERE backlog IS NOT NULL
  );
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.seconds_ahead() TO PUBLIC;
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
            WHEN NOT k.owed THEN greatest(d.due_at, d.held_until, t.backoff_until)
            WHEN d.held_until > now() THEN greatest(CASE WHEN d.claim IS NULL THEN d.held_until ELSE now() END, t.backoff_until)
            ELSE greatest(now(), t.backoff_until)
                   + make_interval(secs => (SELECT catalog_internal.seconds_ahead())[CASE WHEN d.live THEN cardinality(catalog_internal.lane_names()) + 1 ELSE d.lane END])
       END AS next_look_at,
       b.stale,
       s.state = 'priced' AND NOT b.stale AND NOT b.past_target AS fresh,
       c.doubt,
       c.doubt IS NULL AS actionable
FROM catalog.skus s
LEFT JOIN catalog_internal.due d ON d.sku = s.sku
CROSS JOIN catalog_internal.trust_terms() t
CROSS JOIN LATERAL (
  SELECT coalesce(d.due_at <= now(), false) AS owed,
         coalesce(d.due_at <= now() AND d.reason <> 'metadata', false) AS reprice_due,
         s.price_source IS NOT DISTINCT FROM 'live' OR coalesce(d.live AND d.reason = 'live', false) AS refreshed_as_live,
         CASE WHEN s.price_source IS NOT DISTINCT FROM 'live' THEN t.live_target
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
           WHEN k.reprice_due THEN 'owed'
           WHEN b.past_target OR b.stale THEN 'past_target'
           WHEN k.owed THEN 'size_type'
           WHEN t.incident AND s.priced_at < now() - t.live_target THEN 'incident'
           WHEN s.price_source IS DISTINCT FROM 'live' THEN t.catalog_doubt
         END AS doubt
) c;

COMMENT ON VIEW catalog.sku_trust IS 'How far the prices of each SKU can be trusted, one row a SKU: WHERE actionable leaves those to act on; doubt says why not.';
COMMENT ON COLUMN catalog.sku_trust.sku IS 'SKU in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.state IS 'pending, priced, not_found or removed, as in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.price_source IS 'snapshot, live, or null while unknown, as in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.in_manifest IS 'Listed by the newest manifest as corrected since. False: no delta reports its price moves, so judge by price_age.';
COMMENT ON COLUMN catalog.sku_trust.priced_at IS 'When the partner last answered for this SKU.';
COMMENT ON COLUMN catalog.sku_trust.price_age IS 'Age of its prices; null where it has none (state other than priced).';
COMMENT ON COLUMN catalog.sku_trust.target_age IS 'Age that its prices are not to exceed: LIVE_INTERVAL for a live SKU, SWEEP_INTERVAL for any other (METADATA_INTERVAL where that is shorter, or sweeps are off); null where it has none.';
COMMENT ON COLUMN catalog.sku_trust.past_target IS 'True where price_age exceeds target_age.';
COMMENT ON COLUMN catalog.sku_trust.owed IS 'True while a refresh of the SKU is due, also while it waits after being deferred or failing.';
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a refresh is due: new, changed, live, sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command); null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the due refresh is served: changed (urgent: also watched and refresh), live, new, deferred or error (waits, or has waited), metadata, sweep; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the refresh is due; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, or its answer could not be read.';
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused, or nothing counted within five minutes.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where a live price is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: pending, not_found, removed (its state); owed (a re-price: see owed_reason); past_target (too old); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), catalog_stale (catalog_state of catalog.sync_status), delta_late (no delta for 30 minutes, or three times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where nothing speaks against acting on its prices: doubt is null. Implies fresh. A size without a readable price is no price all the same.';
--> statement-breakpoint
-- `sku` is that of the SKU's row (through sku_trust), not of the prices: where many are named, `sku = any(…)` finds
-- these rows first, by their key, and then the rest; a condition on the SKU of the prices would reach none of the
-- other tables, which would be read from end to end.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT t.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       t.price_source, t.priced_at, p.changed_at, t.stale,
       t.actionable AND p.price IS NOT NULL AS actionable
FROM catalog.sku_trust t
JOIN catalog.prices p ON p.sku = t.sku
LEFT JOIN catalog.products pr ON pr.sku = t.sku;

COMMENT ON VIEW catalog.current_prices IS 'Prices with what they mean and how far to trust them. Prices to act on: WHERE actionable.';
COMMENT ON COLUMN catalog.current_prices.sku IS 'SKU in catalog.skus. sku = any(...) finds many at once by their key.';
COMMENT ON COLUMN catalog.current_prices.size IS 'Size key as the partner names it; size_type says what it means.';
COMMENT ON COLUMN catalog.current_prices.price IS 'Whole baht (THB); null where the partner''s entry carries no readable price.';
COMMENT ON COLUMN catalog.current_prices.size_type IS 'What the size means (size_map.size_type).';
COMMENT ON COLUMN catalog.current_prices.name IS 'product.name.';
COMMENT ON COLUMN catalog.current_prices.brand IS 'product.brand.';
COMMENT ON COLUMN catalog.current_prices.model IS 'product.model.';
COMMENT ON COLUMN catalog.current_prices.gender_size IS 'product.gender_size.';
COMMENT ON COLUMN catalog.current_prices.category IS 'product.category.';
COMMENT ON COLUMN catalog.current_prices.price_source IS 'snapshot: the delta reports its price moves; live: the mirror refreshes by itself; null: unknown.';
COMMENT ON COLUMN catalog.current_prices.priced_at IS 'When the partner last answered for this SKU: the price was right then.';
COMMENT ON COLUMN catalog.current_prices.changed_at IS 'When the mirror saw the price change (or the size appear).';
COMMENT ON COLUMN catalog.current_prices.stale IS 'True while a refresh is known to be pending, and where a live price is older than LIVE_INTERVAL.';
COMMENT ON COLUMN catalog.current_prices.actionable IS 'True where the price may be acted on: there is one, and catalog.sku_trust has no doubt of its SKU.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it. Brand and model are
-- compared by their beginnings too, because the index products_brand_model holds only these.
CREATE OR REPLACE FUNCTION catalog.lowest_prices(
  of_size text, of_brand text DEFAULT NULL, of_model text DEFAULT NULL, of_size_type text DEFAULT NULL,
  most integer DEFAULT 100, only_actionable boolean DEFAULT true
) RETURNS TABLE (sku text, size text, price integer, size_type text, name text, brand text, model text, priced_at timestamptz, actionable boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100 AS $$
  SELECT p.sku, p.size, p.price, pr.size_map_size_type, pr.name, pr.brand, pr.model, t.priced_at, t.actionable
  FROM catalog.products pr
  JOIN catalog.prices p ON p.sku = pr.sku AND p.size = of_size AND p.price IS NOT NULL
  JOIN catalog.sku_trust t ON t.sku = pr.sku
  WHERE (of_brand IS NULL OR left(pr.brand, 200) = left(of_brand, 200) AND pr.brand = of_brand)
    AND (of_model IS NULL OR left(pr.model, 200) = left(of_model, 200) AND pr.model = of_model)
    AND (of_size_type IS NULL OR pr.size_map_size_type = of_size_type)
    AND (t.actionable OR NOT only_actionable)
  ORDER BY p.price, p.sku
  LIMIT most
$$;

REVOKE ALL ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) IS 'Who offers a size cheapest: SKUs with that size key by price, of one brand, model or size type where given (exact spelling), at most so many. Prices that are not actionable are left out unless only_actionable is false.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it.
CREATE OR REPLACE FUNCTION catalog.movers(within interval DEFAULT '1 hour', most integer DEFAULT 100)
RETURNS TABLE (sku text, size text, old_price integer, new_price integer, change integer, change_ratio double precision,
  moves bigint, last_moved_at timestamptz, name text, brand text, model text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100 AS $$
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
  LIMIT most
$$;

REVOKE ALL ON FUNCTION catalog.movers(interval, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.movers(interval, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.movers(interval, integer) IS 'What moved within a time (one hour): sizes by the relative change from the price before it to the newest, largest first. Sizes that only appeared or went are not in it, nor moves up to a correction of size_type: sizes meant something else then.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it.
CREATE OR REPLACE FUNCTION catalog.skus_past_target(most integer DEFAULT 1000) RETURNS SETOF catalog.sku_trust
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000 AS $$
  SELECT t.* FROM catalog.sku_trust t WHERE t.past_target ORDER BY t.priced_at LIMIT most
$$;

REVOKE ALL ON FUNCTION catalog.skus_past_target(integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.skus_past_target(integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.skus_past_target(integer) IS 'SKUs whose prices are older than their target, oldest first, at most so many: rows of catalog.sku_trust.';
