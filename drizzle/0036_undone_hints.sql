ALTER TABLE "catalog_internal"."hint_sources" ADD COLUMN "followed" double precision DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."hint_sources" ADD COLUMN "stayed" double precision DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."hint_sources" ADD COLUMN "undone" double precision DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."waiting_hints" ADD COLUMN "undone" double precision DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "told" jsonb;--> statement-breakpoint
-- The hints that wait for the refresh of each of these SKUs, as JSON by SKU; none of a SKU whose hints an earlier refresh has left behind. Null:
-- somebody keeps them locked.
CREATE OR REPLACE FUNCTION catalog_internal.hints_at(skus text[]) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.hints_are_free() THEN
    RETURN NULL;
  END IF;
  RETURN (
    SELECT coalesce(jsonb_object_agg(sku, hints), '{}') FROM (
      SELECT q.sku, coalesce(jsonb_agg(jsonb_build_object('source', q.source, 'hazard', q.hazard, 'undone', q.undone))
        FILTER (WHERE s.asked_at IS NULL OR q.hinted_at > s.asked_at), '[]') AS hints
      FROM catalog_internal.waiting_hints q JOIN catalog.skus s ON s.sku = q.sku
      WHERE q.sku = ANY (hints_at.skus) GROUP BY q.sku
    ) h
  );
END
$$;
--> statement-breakpoint
-- What src/store/hints.ts keeps of each source of hints, as a seller reads it.
CREATE OR REPLACE VIEW catalog.hint_sources AS
SELECT
  source,
  hints,
  pulled AS refreshes_brought_forward,
  tested AS refreshes_tested,
  -- As hintPrecision and hintRecall of src/sync/live/hints.ts.
  p.precision,
  CASE WHEN moves > 0 THEN least(1, p.precision * tested / moves) ELSE 0 END AS recall,
  last_hint,
  CASE WHEN u.ratio > 0 THEN least(0.9, (2 * u.ratio + 1 - sqrt(4 * u.ratio + 1)) / (2 * u.ratio)) ELSE 0 END AS undone
FROM catalog_internal.hint_sources
CROSS JOIN LATERAL (
  SELECT least(0.95, greatest(0, 1 - (4 * 0.7 + unmoved) / (4 + expected)))::float8 AS precision
) p
-- As undonePart there.
CROSS JOIN LATERAL (
  SELECT undone * (4 + followed) / (4 + stayed) ^ 2 AS ratio
) u;
--> statement-breakpoint
COMMENT ON COLUMN catalog.hint_sources.undone IS 'How often such a move is undone before the next refresh: the prices are what they were. What does not last brings refreshes forward by less.';
