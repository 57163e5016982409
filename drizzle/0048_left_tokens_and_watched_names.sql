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
--> statement-breakpoint
-- Rows that are there are the sellers' own, and stay.
ALTER TABLE "catalog"."scope" ADD CONSTRAINT "sku_has_no_blank_at_its_ends_and_no_control_character" CHECK ("catalog"."scope"."kind" <> 'sku' or "catalog"."scope"."value" !~ '^[\s\u00A0\u2000-\u200A\u3000\uFEFF]|[\s\u00A0\u2000-\u200A\u3000\uFEFF]$|[[:cntrl:]]') NOT VALID;
--> statement-breakpoint
ALTER TABLE "catalog"."watchlist" ADD CONSTRAINT "sku_has_no_blank_at_its_ends_and_no_control_character" CHECK ("catalog"."watchlist"."sku" !~ '^[\s\u00A0\u2000-\u200A\u3000\uFEFF]|[\s\u00A0\u2000-\u200A\u3000\uFEFF]$|[[:cntrl:]]') NOT VALID;
