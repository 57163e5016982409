-- Tokens that deltas have left: a manifest of such a snapshot is older than what they have reported since.
CREATE TABLE "catalog_internal"."left_tokens" (
	"token" text COLLATE "C" PRIMARY KEY NOT NULL,
	"left_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.left_tokens IS 'Tokens that deltas have left, and when: a manifest of such a snapshot is older than what they have reported since.';
--> statement-breakpoint
-- What a seller is told where a SKU is refused is the constraint's name.
ALTER TABLE "catalog"."watchlist" RENAME CONSTRAINT "watchlist_sku" TO "sku_has_1_to_512_characters";
