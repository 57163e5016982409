ALTER TABLE "catalog_internal"."settings" ADD COLUMN "rate_share" integer DEFAULT 120 NOT NULL;--> statement-breakpoint

-- Requests a minute that the pacer allows now: what it resumed with, grown since (partner/pacer.ts, ceilingAt).
CREATE FUNCTION catalog_internal.present_ceiling(p catalog_internal.pace) RETURNS real
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (least(
      greatest(1, floor(s.rate_share * s.rate_window / (s.rate_window + least(0.5, s.rate_window / 20))) - 1),
      greatest(1, p.ceiling) + greatest(5, s.rate_share / 24.0)
        * greatest(0, extract(epoch FROM clock_timestamp() - p.raised_at)) / s.rate_window
    ) * 60 / s.rate_window)::real
  FROM catalog_internal.settings s WHERE p.ceiling IS NOT NULL
$$;
--> statement-breakpoint
CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus, k.pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p) AS requests_per_minute,
       CASE WHEN p.silent_until > now() THEN p.silent_until END AS backing_off_until,
       catalog_internal.catalog_state(s) AS catalog_state
FROM catalog_internal.sync s
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
COMMENT ON COLUMN catalog.sync_status.requests_per_minute IS 'Requests a minute that the pacer allows the mirror at present.';
