-- One row. The pacer creates its own row when it first starts, and the pause when somebody first asks for one:
-- therefore the LEFT JOINs. LIMIT 1, because the planner assumes hundreds of rows in one-row tables that were never
-- analyzed: joined, they seem to be millions, and a server compiles the query for seconds (jit).
CREATE OR REPLACE VIEW catalog.sync_status AS
-- What is counted by it in one statement is counted at one moment.
WITH m AS MATERIALIZED (SELECT catalog_internal.moment() AS moment)
SELECT (s.one).snapshot_id, (s.one).snapshot_generated_at, (s.one).manifest_applied_at, (s.one).delta_checked_at,
       k.skus, k.live_skus - o.live_skus AS live_skus, k.pending_skus - o.pending_skus AS pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p.one) AS requests_per_minute,
       CASE WHEN (p.one).backoff_until > (SELECT moment FROM m) THEN (p.one).backoff_until END AS backing_off_until,
       catalog_internal.catalog_state(s.one) AS catalog_state,
       l.incident_since,
       (p.one).refusal, (p.one).refused_since, coalesce((p.one).episodes, 0) AS refusals,
       z.since AS paused_since, z.until AS paused_until,
       k.skus - o.skus AS skus_in_scope
FROM (SELECT y AS one FROM catalog_internal.sync y LIMIT 1) s
CROSS JOIN (SELECT incident_since FROM catalog_internal.live_plan LIMIT 1) l
LEFT JOIN (SELECT y AS one FROM catalog_internal.pace y LIMIT 1) p ON true
LEFT JOIN (SELECT y.since, y.until FROM catalog_internal.pause y WHERE catalog_internal.pause_holds(y) LIMIT 1) z ON true
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= (SELECT moment FROM m) AND NOT catalog_internal.is_waiting(l, (SELECT moment FROM m))) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0 AND outside_due_at IS NULL) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= (SELECT moment FROM m) AND NOT catalog_internal.is_waiting(l, (SELECT moment FROM m))) AS oldest_due_at
  FROM catalog_internal.due l
) d
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE s.price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE s.state = 'pending') AS pending_skus
  FROM catalog_internal.due l JOIN catalog.skus s ON s.sku = l.sku
  WHERE (SELECT scoped FROM catalog_internal.scoping) AND l.outside_due_at IS NOT NULL
) o;

COMMENT ON VIEW catalog.sync_status IS 'How the mirror stands, one row.';
COMMENT ON COLUMN catalog.sync_status.snapshot_id IS 'Snapshot that the mirror follows: the delta is asked from there.';
COMMENT ON COLUMN catalog.sync_status.snapshot_generated_at IS 'Build time of the newest snapshot that the manifest route told of.';
COMMENT ON COLUMN catalog.sync_status.manifest_applied_at IS 'When a manifest was last applied (baseline).';
COMMENT ON COLUMN catalog.sync_status.delta_checked_at IS 'When the delta was last asked for and applied.';
COMMENT ON COLUMN catalog.sync_status.skus IS 'SKUs in the mirror, in any state.';
COMMENT ON COLUMN catalog.sync_status.live_skus IS 'SKUs in scope of price_source live.';
COMMENT ON COLUMN catalog.sync_status.pending_skus IS 'SKUs in scope that are not priced yet.';
COMMENT ON COLUMN catalog.sync_status.due_skus IS 'SKUs due now; one that was deferred, or waits for a second answer, counts once its wait is over.';
COMMENT ON COLUMN catalog.sync_status.deferred_skus IS 'SKUs that the partner deferred, waiting or due again.';
COMMENT ON COLUMN catalog.sync_status.oldest_due_at IS 'Since when the SKU that has been due for longest is due; null: nothing is due.';
COMMENT ON COLUMN catalog.sync_status.requests_per_minute IS 'Requests a minute that the pacer allows the mirror at present.';
COMMENT ON COLUMN catalog.sync_status.backing_off_until IS 'Until when nobody sends after a refusal; null: no back-off.';
COMMENT ON COLUMN catalog.sync_status.catalog_state IS 'ok; stale: the catalog routes cannot be trusted to report changes, SKUs are re-priced by age; none: no baseline yet.';
COMMENT ON COLUMN catalog.sync_status.incident_since IS 'Since when the whole catalog is taken for live-priced: prices age, and are refreshed by worth with all there is; null: no incident.';
COMMENT ON COLUMN catalog.sync_status.refusal IS 'How the partner refused the last request: throttled-or-forbidden (403), unauthorised (401), authorizer-fault (the authorizer''s 500), account-not-configured; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refused_since IS 'When the first of the present refusals came; null while requests are let through.';
COMMENT ON COLUMN catalog.sync_status.refusals IS 'Refusals in a row, with nothing let through in between.';
COMMENT ON COLUMN catalog.sync_status.paused_since IS 'Since when `catalog-mirror pause` keeps all requests back; null: not paused.';
COMMENT ON COLUMN catalog.sync_status.paused_until IS 'When the pause ends by itself; infinity: with `catalog-mirror resume`; null: not paused.';
COMMENT ON COLUMN catalog.sync_status.skus_in_scope IS 'SKUs that are in scope: with MIRROR_SCOPE=catalog all, else those that the rules of catalog.scope include.';
