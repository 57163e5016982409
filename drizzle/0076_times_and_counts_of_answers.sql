-- Tables of their own, as columns of others would have the upgrade wait for sellers who have read those.
CREATE TABLE "catalog_internal"."idle_manifests" (
	"applied_at" timestamp with time zone PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."unread_lines" (
	"sku" text COLLATE "C" PRIMARY KEY NOT NULL
);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.idle_manifests IS 'Manifests that were applied for other counts than the mirror has and listed nothing else, less the checks since in which the counts were right.';
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.unread_lines IS 'SKUs that are asked and judged as if the delta had left out a move of them, because the manifest''s line of each could not be read.';
