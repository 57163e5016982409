ALTER TABLE "catalog_internal"."mass_move" ADD COLUMN "factor" real;
--> statement-breakpoint
ALTER TABLE "catalog_internal"."mass_move" ADD COLUMN "accepted" real;
--> statement-breakpoint
ALTER TABLE "catalog_internal"."mass_move" ADD COLUMN "accepted_at" timestamp with time zone;
