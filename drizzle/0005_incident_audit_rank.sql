CREATE TABLE "catalog_internal"."delta_audit" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"since" timestamp with time zone DEFAULT now() NOT NULL,
	"confirmed" bigint DEFAULT 0 NOT NULL,
	"unchanged" bigint DEFAULT 0 NOT NULL,
	"seen_first" bigint DEFAULT 0 NOT NULL,
	"seen_first_seconds" double precision DEFAULT 0 NOT NULL,
	"never_reported" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "delta_audit_one_row" CHECK ("catalog_internal"."delta_audit"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."unreported_moves" (
	"sku" text PRIMARY KEY NOT NULL,
	"seen_at" timestamp with time zone NOT NULL,
	"moves" integer DEFAULT 1 NOT NULL,
	"reported_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."due" ADD COLUMN "rank" real DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_calls" ADD COLUMN "snapshot_asked" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_calls" ADD COLUMN "snapshot_deferred" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_plan" ADD COLUMN "early_minutes" double precision;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_plan" ADD COLUMN "incident_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_plan" ADD COLUMN "incident_because" text;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_plan" ADD COLUMN "incident_probed_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog"."skus" ADD COLUMN "hash_before_live" text;--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync" ADD COLUMN "caught_up" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync" ADD COLUMN "token_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "catalog_internal"."sync" ADD COLUMN "built_after" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "due_urgent" ON "catalog_internal"."due" USING btree ("live","rank" DESC NULLS FIRST,"due_at") WHERE held_until is null and lane = 1;--> statement-breakpoint
INSERT INTO catalog_internal.delta_audit DEFAULT VALUES;
--> statement-breakpoint

-- As before (0001), and a watched SKU's weight becomes its rank among what is urgent.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE sql AS $$
  WITH marked AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation, rank)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1, coalesce(w.weight, 1)
    FROM unnest(skus) AS s LEFT JOIN catalog.watchlist w ON w.sku = s
    ORDER BY s
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE WHEN d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason ELSE excluded.reason END,
      live = coalesce(counts_as_live, d.live),
      due_at = least(d.due_at, excluded.due_at),
      generation = d.generation + 1,
      rank = excluded.rank,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND d.failures > 0 THEN NULL ELSE d.held_until END
    RETURNING 1
  )
  SELECT count(*) FROM marked
$$;
--> statement-breakpoint

-- In how many looks of the last three days a price of a SKU had moved, and how many minutes since its first price (three
-- days at most) that is: what its history says of its rate when it turns live.
CREATE FUNCTION catalog_internal.past_moves(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE sql STABLE AS $$
  SELECT count(DISTINCT h.observed_at)::integer,
         CASE WHEN first_priced_at IS NULL THEN 0
           ELSE extract(epoch FROM least(now() - first_priced_at, interval '3 days')) / 60
         END
  FROM catalog.price_history h
  WHERE h.sku = of_sku AND h.observed_at > now() - interval '3 days'
$$;
--> statement-breakpoint

CREATE VIEW catalog.delta_audit AS
SELECT a.since,
       a.confirmed AS reports_confirmed,
       a.unchanged AS reports_unchanged,
       a.seen_first AS moves_seen_first,
       a.seen_first_seconds / nullif(a.seen_first, 0) AS seen_first_by_seconds,
       a.never_reported AS moves_never_reported,
       (SELECT count(*) FROM catalog_internal.unreported_moves WHERE reported_at IS NULL) AS moves_waiting
FROM catalog_internal.delta_audit a;
--> statement-breakpoint
COMMENT ON VIEW catalog.delta_audit IS 'How well the delta and the mirror''s own looks agree on snapshot-priced SKUs, counted since `since`. One row.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.delta_audit.reports_confirmed IS 'SKUs reported as changed whose next look found a price moved.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.delta_audit.reports_unchanged IS 'SKUs reported as changed whose next look found nothing moved. Not where the mirror cannot know: a first price or a move seen since the snapshot that the report starts from, or a change of cohort.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.delta_audit.moves_seen_first IS 'Moves that a look of the mirror''s own (sweep, spare slots, metadata) found before the delta reported the SKU.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.delta_audit.seen_first_by_seconds IS 'How long before the report these were seen, on average.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.delta_audit.moves_never_reported IS 'Moves that a look found, that a later look found still there, and that no delta reported although a snapshot was built in between. Should stay near 0; a price that swings to and fro between looks can be among them.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.delta_audit.moves_waiting IS 'SKUs on which a look found a move that no delta has reported so far.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.skus.hash_before_live IS 'The hash before the SKU turned live-priced, while no look has found its prices moved since.';
--> statement-breakpoint

-- Also stale: a live price older than LIVE_INTERVAL, whenever its next look is planned. While there are fewer looks than
-- the interval asks for, the plan lets some SKUs wait longer, and SQL must say so.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT p.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       s.price_source, s.priced_at, p.changed_at,
       coalesce(d.due_at <= now() AND d.reason <> 'metadata', false)
         OR ((s.price_source = 'live' OR d.live AND d.reason = 'live')
             AND s.priced_at < now() - make_interval(secs => (SELECT live_interval FROM catalog_internal.settings))) AS stale
FROM catalog.prices p
JOIN catalog.skus s USING (sku)
LEFT JOIN catalog.products pr USING (sku)
LEFT JOIN catalog_internal.due d USING (sku);
--> statement-breakpoint
COMMENT ON COLUMN catalog.current_prices.stale IS 'True while a re-price is known to be owed, and where a live price is older than LIVE_INTERVAL.';
--> statement-breakpoint

CREATE OR REPLACE VIEW catalog.sync_status AS
SELECT s.snapshot_id, s.snapshot_generated_at, s.manifest_applied_at, s.delta_checked_at,
       k.skus, k.live_skus, k.pending_skus,
       d.due_skus, d.deferred_skus, d.oldest_due_at,
       catalog_internal.present_ceiling(p) AS requests_per_minute,
       CASE WHEN p.silent_until > now() THEN p.silent_until END AS backing_off_until,
       catalog_internal.catalog_state(s) AS catalog_state,
       l.incident_since
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
COMMENT ON COLUMN catalog.sync_status.incident_since IS 'Since when the whole catalog is taken for live-priced: prices age, and are looked at by worth with all there is; null: no incident.';
