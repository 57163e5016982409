-- What src/store/sellers/hints.ts stores about each source of hints, as sellers read it.
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

COMMENT ON VIEW catalog.hint_sources IS 'Who has called catalog.hint, and what refreshes have shown of it; manifest.updated_at and manifest.sizes are what lines of manifests tell. Of more than 50 sources the others are one, other.';
COMMENT ON COLUMN catalog.hint_sources.source IS 'The name that its callers have given, or the part of a manifest that it is.';
COMMENT ON COLUMN catalog.hint_sources.last_hint IS 'When the last hint was read that it gave.';
COMMENT ON COLUMN catalog.hint_sources.hints IS 'Hints that the mirror has read, those at SKUs that are not live included.';
COMMENT ON COLUMN catalog.hint_sources.refreshes_brought_forward IS 'Hints that have brought the refresh of their SKU forward.';
COMMENT ON COLUMN catalog.hint_sources.refreshes_tested IS 'Refreshes of SKUs that it had hinted at, as far as they are remembered: 500 at most.';
COMMENT ON COLUMN catalog.hint_sources.precision IS 'How often such a SKU has moved, beyond what its own rate of change says.';
COMMENT ON COLUMN catalog.hint_sources.recall IS 'The part of all moves of live SKUs that the source told of.';
COMMENT ON COLUMN catalog.hint_sources.undone IS 'How often such a move is undone before the next refresh: the prices are what they were. What does not last brings refreshes forward by less.';
