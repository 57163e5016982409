-- Without defaults at first: PostgreSQL 15 adds no column with one to a table whose row type a function takes.
ALTER TABLE "catalog_internal"."sync"
  ADD COLUMN "named_snapshots" jsonb,
  ADD COLUMN "delta_doubt" text,
  ADD COLUMN "behind_since" timestamp with time zone,
  ADD COLUMN "catalog_differs_at" timestamp with time zone,
  ADD COLUMN "catalog_difference" jsonb,
  ADD COLUMN "manifest_unclear" integer,
  ADD COLUMN "manifest_live_miscount" integer,
  ADD COLUMN "rebuilds" integer,
  ADD COLUMN "own_tokens" boolean,
  ADD COLUMN "round_changed" integer,
  ADD COLUMN "limit_suspected_at" timestamp with time zone;
--> statement-breakpoint
UPDATE "catalog_internal"."sync" SET "named_snapshots" = '[]'::jsonb, "manifest_unclear" = 0, "manifest_live_miscount" = 0, "rebuilds" = 0, "own_tokens" = false;
--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync"
  ALTER COLUMN "named_snapshots" SET DEFAULT '[]'::jsonb,
  ALTER COLUMN "named_snapshots" SET NOT NULL,
  ALTER COLUMN "manifest_unclear" SET DEFAULT 0,
  ALTER COLUMN "manifest_unclear" SET NOT NULL,
  ALTER COLUMN "manifest_live_miscount" SET DEFAULT 0,
  ALTER COLUMN "manifest_live_miscount" SET NOT NULL,
  ALTER COLUMN "rebuilds" SET DEFAULT 0,
  ALTER COLUMN "rebuilds" SET NOT NULL,
  ALTER COLUMN "own_tokens" SET DEFAULT false,
  ALTER COLUMN "own_tokens" SET NOT NULL;
--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync" ADD CONSTRAINT "sync_delta_doubt" CHECK ("catalog_internal"."sync"."delta_doubt" in ('suspected', 'behind', 'distrusted'));
--> statement-breakpoint
-- Whether no delta was checked for longer than delta_late_after allows, or the last one at a time to come, which tells nothing of
-- when it was: a clock was set; or whether what the delta says is refuted by the manifest route, which names a newer snapshot than
-- it leads to, or other counts of the same one. Null before the first baseline. Health, catalog_state and the doubt delta_late go by
-- this.
-- Writers date by the beginning of their transaction, which may be after that of the reader: hence the present time, and with it
-- VOLATILE, as the planner sees through no STABLE function that calls clock_timestamp().
CREATE OR REPLACE FUNCTION catalog_internal.delta_is_late(s catalog_internal.sync, g catalog_internal.settings) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT s.delta_doubt IS NOT DISTINCT FROM 'behind' OR s.catalog_differs_at IS NOT NULL OR coalesce(s.delta_checked_at, s.manifest_applied_at)
    NOT BETWEEN now() - make_interval(secs => catalog_internal.delta_late_after(g)) AND clock_timestamp() + interval '1 minute';
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.delta_is_late(catalog_internal.sync, catalog_internal.settings) FROM PUBLIC;
