-- The counts of src/store/catalog/audit.ts, as sellers read them.
CREATE OR REPLACE VIEW catalog.delta_audit AS
SELECT a.since,
       a.confirmed AS reports_confirmed,
       a.unchanged AS reports_unchanged,
       a.seen_first AS moves_seen_first,
       a.seen_first_seconds / nullif(a.seen_first, 0) AS seen_first_by_seconds,
       a.never_reported AS moves_never_reported,
       (SELECT count(*) FROM catalog_internal.unreported_moves WHERE reported_at IS NULL) AS moves_waiting
FROM catalog_internal.delta_audit a;

COMMENT ON VIEW catalog.delta_audit IS 'How well the delta and the mirror''s own refreshes agree on snapshot-priced SKUs, counted since `since`. One row.';
COMMENT ON COLUMN catalog.delta_audit.since IS 'Since when is counted.';
COMMENT ON COLUMN catalog.delta_audit.reports_confirmed IS 'SKUs reported as changed whose next refresh found a price moved.';
COMMENT ON COLUMN catalog.delta_audit.reports_unchanged IS 'SKUs reported as changed whose next refresh found nothing moved. Not where the mirror cannot know: a first price or a move seen since the snapshot that the report starts from, or a change of cohort.';
COMMENT ON COLUMN catalog.delta_audit.moves_seen_first IS 'Moves that a refresh of the mirror''s own (sweep, spare slots, metadata) found before the delta reported the SKU.';
COMMENT ON COLUMN catalog.delta_audit.seen_first_by_seconds IS 'How long before the report these were seen, on average.';
COMMENT ON COLUMN catalog.delta_audit.moves_never_reported IS 'Moves that a refresh found, that a later refresh found still there, and that no delta reported although a snapshot was built in between. Should stay near 0; a price that swings to and fro between refreshes can be among them.';
COMMENT ON COLUMN catalog.delta_audit.moves_waiting IS 'SKUs on which a refresh found a move that no delta has reported so far.';
