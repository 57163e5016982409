ALTER TABLE "catalog_internal"."sync" ADD COLUMN "seen_snapshot_id" text;--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync" ADD COLUMN "seen_generated_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync" ADD COLUMN "seen_at" timestamp with time zone;