CREATE SCHEMA "catalog";
--> statement-breakpoint
CREATE SCHEMA IF NOT EXISTS "catalog_internal";
--> statement-breakpoint
CREATE SEQUENCE "catalog_internal"."claim_numbers" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
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
	"failures" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."pace" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"ceiling" double precision NOT NULL,
	"raised_at" timestamp with time zone NOT NULL,
	"silent_until" timestamp with time zone,
	"probe_sent_at" timestamp with time zone,
	"episodes" integer DEFAULT 0 NOT NULL,
	"refusal" text,
	"refused_at" timestamp with time zone,
	"occupancy" integer,
	"resume_at" double precision,
	CONSTRAINT "pace_one_row" CHECK ("catalog_internal"."pace"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."pace_sends" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."pace_sends_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"sent_at" timestamp with time zone NOT NULL,
	"lane" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog"."price_history" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog"."price_history_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"sku" text NOT NULL,
	"size" text NOT NULL,
	"old_price" integer,
	"new_price" integer,
	"observed_at" timestamp with time zone NOT NULL
);
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
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog"."product_history_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
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
	CONSTRAINT "settings_one_row" CHECK ("catalog_internal"."settings"."id")
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
	CONSTRAINT "skus_state" CHECK ("catalog"."skus"."state" in ('pending', 'priced', 'not_found', 'removed')),
	CONSTRAINT "skus_price_source" CHECK ("catalog"."skus"."price_source" in ('snapshot', 'live'))
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
CREATE TABLE "catalog"."watchlist" (
	"sku" text PRIMARY KEY NOT NULL,
	"weight" real DEFAULT 1 NOT NULL,
	"note" text,
	CONSTRAINT "watchlist_weight" CHECK ("catalog"."watchlist"."weight" > 0)
);
--> statement-breakpoint
CREATE INDEX "due_claim" ON "catalog_internal"."due" USING btree ("live","lane","due_at") WHERE held_until is null;--> statement-breakpoint
CREATE INDEX "due_held" ON "catalog_internal"."due" USING btree ("held_until") WHERE held_until is not null;--> statement-breakpoint
CREATE INDEX "pace_sends_sent_at" ON "catalog_internal"."pace_sends" USING btree ("sent_at");--> statement-breakpoint
CREATE INDEX "price_history_sku" ON "catalog"."price_history" USING btree ("sku","id");--> statement-breakpoint
CREATE INDEX "product_history_sku" ON "catalog"."product_history" USING btree ("sku","id");