ALTER TABLE "catalog_internal"."pace" ADD COLUMN "refused_since" timestamp with time zone;--> statement-breakpoint

-- What is known of a refusal, to be seen from SQL too: what was answered, since when, and how often in a row.
CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus, k.pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p) AS requests_per_minute,
       CASE WHEN p.silent_until > now() THEN p.silent_until END AS backing_off_until,
       catalog_internal.catalog_state(s) AS catalog_state,
       l.incident_since,
       p.refusal, p.refused_since, coalesce(p.episodes, 0) AS refusals
FROM catalog_internal.sync s
CROSS JOIN catalog_internal.live_plan l
LEFT JOIN catalog_internal.pace p ON true
CROSS JOIN (
  SELECT count(*) AS skus,
         count(*) FILTER (WHERE price_source = 'live') AS live_skus,
         count(*) FILTER (WHERE state = 'pending') AS pending_skus
  FROM catalog.skus
) k
CROSS JOIN (
  SELECT count(*) FILTER (WHERE due_at <= now() AND (deferrals = 0 OR held_until IS NULL OR claim IS NOT NULL OR held_until <= now())) AS due_skus,
         count(*) FILTER (WHERE deferrals > 0) AS deferred_skus,
         min(due_at) FILTER (WHERE due_at <= now()) AS oldest_due_at
  FROM catalog_internal.due
) d;
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.refusal IS 'How the partner refused the last probe or request: throttled-or-forbidden (403), unauthorised (401), authorizer-fault (the authorizer''s 500), account-not-configured; null while requests are let through.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.refused_since IS 'When the first of the present refusals came; null while requests are let through.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.sync_status.refusals IS 'Refusals in a row, with nothing let through in between.';
