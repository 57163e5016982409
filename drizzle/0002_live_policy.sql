CREATE TABLE "catalog_internal"."live_calls" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."live_calls_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"called_at" timestamp with time zone NOT NULL,
	"computed" integer NOT NULL,
	"deferred" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."live_plan" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"look_price" double precision,
	"most_minutes" double precision,
	"solved_at" timestamp with time zone,
	"ceiling_per_minute" double precision,
	"ceiling_at" timestamp with time zone,
	CONSTRAINT "live_plan_one_row" CHECK ("catalog_internal"."live_plan"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."live_rates" (
	"sku" text PRIMARY KEY NOT NULL,
	"alpha" double precision NOT NULL,
	"beta" double precision NOT NULL
);
--> statement-breakpoint
CREATE INDEX "live_calls_called_at" ON "catalog_internal"."live_calls" USING btree ("called_at");--> statement-breakpoint
INSERT INTO catalog_internal.live_plan DEFAULT VALUES;
--> statement-breakpoint
INSERT INTO catalog_internal.tasks (task) VALUES ('live-plan');
--> statement-breakpoint
ALTER TABLE catalog_internal.live_rates SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
ALTER TABLE catalog_internal.live_calls SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
