-- What the status showed, minute by minute: the charts of the status page outlive a restart.
CREATE TABLE "catalog_internal"."samples" (
	"minute" timestamp with time zone PRIMARY KEY NOT NULL,
	"state" text NOT NULL,
	"backing_off" boolean NOT NULL,
	"incident" boolean NOT NULL,
	"requests" integer NOT NULL,
	"other_requests" integer NOT NULL,
	"ceiling" double precision NOT NULL,
	"request_limit" integer NOT NULL,
	"skus" integer,
	"pending" integer,
	"due" integer,
	"snapshot_priced" integer,
	"snapshot_fresh" integer,
	"snapshot_p50" double precision,
	"snapshot_p95" double precision,
	"live_priced" integer,
	"live_fresh" integer,
	"live_p50" double precision,
	"live_p95" double precision,
	"price_changes" double precision,
	"price_position" bigint NOT NULL
);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.samples IS 'What the status showed, one row a minute for about a day: the charts of the status page. A minute without a row: no daemon could read the mirror then.';
COMMENT ON COLUMN catalog_internal.samples.minute IS 'Start of the minute, by the clock of Postgres.';
COMMENT ON COLUMN catalog_internal.samples.state IS 'State of the mirror, as the daemon judged that took the sample.';
COMMENT ON COLUMN catalog_internal.samples.backing_off IS 'True where a back-off lasted then, or in the minute before.';
COMMENT ON COLUMN catalog_internal.samples.incident IS 'True while the whole catalog was treated as live-priced.';
COMMENT ON COLUMN catalog_internal.samples.requests IS 'Requests of the mirror in the last window of the rate limit.';
COMMENT ON COLUMN catalog_internal.samples.other_requests IS 'Requests in it that other services took through catalog.take_request.';
COMMENT ON COLUMN catalog_internal.samples.ceiling IS 'Ceiling of the mirror then, in requests a window.';
COMMENT ON COLUMN catalog_internal.samples.request_limit IS 'Limit of the account, in requests a window.';
COMMENT ON COLUMN catalog_internal.samples.skus IS 'SKUs in the mirror. This and all below but the last two are as of the last count, and null where that was out of date.';
COMMENT ON COLUMN catalog_internal.samples.pending IS 'SKUs never priced.';
COMMENT ON COLUMN catalog_internal.samples.due IS 'SKUs whose refresh was due.';
COMMENT ON COLUMN catalog_internal.samples.snapshot_priced IS 'Priced SKUs whose price source is snapshot.';
COMMENT ON COLUMN catalog_internal.samples.snapshot_fresh IS 'Of these, SKUs whose price was within its target and not stale.';
COMMENT ON COLUMN catalog_internal.samples.snapshot_p50 IS 'Median age of their prices in seconds, estimated from the histogram price_age_seconds.';
COMMENT ON COLUMN catalog_internal.samples.snapshot_p95 IS 'Age in seconds that 95 % of their prices did not exceed, estimated likewise.';
COMMENT ON COLUMN catalog_internal.samples.live_priced IS 'Priced SKUs whose price source is live.';
COMMENT ON COLUMN catalog_internal.samples.live_fresh IS 'Of these, SKUs whose price was within its target and not stale.';
COMMENT ON COLUMN catalog_internal.samples.live_p50 IS 'Median age of their prices in seconds, estimated from the histogram price_age_seconds.';
COMMENT ON COLUMN catalog_internal.samples.live_p95 IS 'Age in seconds that 95 % of their prices did not exceed, estimated likewise.';
COMMENT ON COLUMN catalog_internal.samples.price_changes IS 'Price changes a minute since the row before; null where that is more than three minutes away.';
COMMENT ON COLUMN catalog_internal.samples.price_position IS 'Newest id of catalog.price_history then, from which the next row counts.';
