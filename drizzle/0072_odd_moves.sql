CREATE TABLE "catalog_internal"."odd_moves" (
	"sku" text COLLATE "C" NOT NULL,
	"factor" real NOT NULL,
	"begun_at" timestamp with time zone NOT NULL,
	CONSTRAINT "odd_moves_sku_begun_at_pk" PRIMARY KEY("sku","begun_at")
);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.odd_moves IS 'SKUs that have begun to move implausibly within the hour, and by which factor (natural logarithm): eight with one factor are a fault of the partner.';
