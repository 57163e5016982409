ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "long_alpha" real;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "long_beta" real;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "short_alpha" real;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "short_beta" real;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "short_odds" real;