-- The most valuable of what is due is listed while there is more of it than can be refreshed.
CREATE TABLE "catalog_internal"."live_backlog" (
	"sku" text COLLATE "C" PRIMARY KEY NOT NULL,
	"place" integer NOT NULL,
	"listed_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_plan" ADD COLUMN "overdue_minutes" double precision;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_plan" ADD COLUMN "idle_minutes" double precision;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_plan" ADD COLUMN "refreshed_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "live_backlog_place" ON "catalog_internal"."live_backlog" USING btree ("place");
--> statement-breakpoint
-- Puts right what a clock that was ahead has written everywhere but by SKU and in the histories (redate_skus, redate_history), once it has been set back. Returns by how many
-- seconds it was, 0: it was not. That is at most by so much too little as the high-water mark was old.
CREATE OR REPLACE FUNCTION catalog_internal.set_back_clock() RETURNS float8
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz;
  shift interval;
BEGIN
  PERFORM FROM catalog_internal.clock FOR UPDATE;
  LOCK TABLE catalog_internal.lock_pace IN EXCLUSIVE MODE;
  moment := clock_timestamp();
  shift := catalog_internal.clock_high_water() - moment;
  IF shift < interval '2 seconds' THEN
    RETURN 0;
  END IF;
  UPDATE catalog_internal.clock SET high_water = moment, steady_since = moment,
    set_back_seconds = coalesce(set_back_seconds, 0) + extract(epoch FROM shift);
  UPDATE catalog_internal.pace_sends SET sent_at = catalog_internal.happened(sent_at, moment, shift) WHERE sent_at > moment;
  PERFORM catalog_internal.recount_others(moment, shift);
  UPDATE catalog_internal.pace SET raised_at = catalog_internal.happened(raised_at, moment, shift),
    half_open_sent_at = catalog_internal.happened(half_open_sent_at, moment, shift),
    refused_since = catalog_internal.happened(refused_since, moment, shift),
    refused_at = catalog_internal.happened(refused_at, moment, shift),
    backoff_until = catalog_internal.awaited(backoff_until, moment, shift);
  UPDATE catalog_internal.tasks SET next_at = catalog_internal.awaited(next_at, moment, shift),
    started_at = catalog_internal.happened(started_at, moment, shift),
    finished_at = catalog_internal.happened(finished_at, moment, shift),
    succeeded_at = catalog_internal.happened(succeeded_at, moment, shift),
    -- A run that lives renews its lease.
    running_until = CASE WHEN running_until > moment THEN least(running_until, moment + interval '20 seconds') END;
  UPDATE catalog_internal.sync SET manifest_applied_at = catalog_internal.happened(manifest_applied_at, moment, shift),
    delta_checked_at = catalog_internal.happened(delta_checked_at, moment, shift),
    snapshot_moved_at = catalog_internal.happened(snapshot_moved_at, moment, shift),
    catalog_checked_at = catalog_internal.happened(catalog_checked_at, moment, shift),
    chain_broken_at = catalog_internal.happened(chain_broken_at, moment, shift),
    token_at = catalog_internal.happened(token_at, moment, shift),
    built_after = catalog_internal.happened(built_after, moment, shift);
  UPDATE catalog_internal.live_plan SET solved_at = catalog_internal.happened(solved_at, moment, shift),
    incident_since = catalog_internal.happened(incident_since, moment, shift),
    incident_tried_at = catalog_internal.happened(incident_tried_at, moment, shift),
    refreshed_at = catalog_internal.happened(refreshed_at, moment, shift);
  UPDATE catalog_internal.live_ceiling SET since = catalog_internal.happened(since, moment, shift),
    blocked_at = catalog_internal.happened(blocked_at, moment, shift),
    failed_at = catalog_internal.happened(failed_at, moment, shift),
    cycle_from = catalog_internal.happened(cycle_from, moment, shift),
    credit_from = catalog_internal.happened(credit_from, moment, shift);
  UPDATE catalog_internal.live_calls SET called_at = catalog_internal.happened(called_at, moment, shift) WHERE called_at > moment;
  UPDATE catalog_internal.unreported_moves SET seen_at = catalog_internal.happened(seen_at, moment, shift),
    reported_at = catalog_internal.happened(reported_at, moment, shift)
  WHERE seen_at > moment OR reported_at > moment;
  UPDATE catalog_internal.mass_move SET since = catalog_internal.happened(since, moment, shift) WHERE since > moment;
  UPDATE catalog_internal.delta_audit SET since = catalog_internal.happened(since, moment, shift);
  UPDATE catalog_internal.quarantine SET seen_at = catalog_internal.happened(seen_at, moment, shift) WHERE seen_at > moment;
  -- Tests of prices whose age that clock told, and draws that it has dated.
  DELETE FROM catalog_internal.calibration_hours WHERE hour > moment;
  DELETE FROM catalog_internal.random_looks WHERE look_at > moment;
  DELETE FROM catalog_internal.live_backlog WHERE listed_at > moment;
  -- The next reader of the status counts anew.
  DELETE FROM catalog_internal.catalog_counts WHERE counted_at > moment;
  RETURN extract(epoch FROM shift);
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.set_back_clock() FROM PUBLIC;
--> statement-breakpoint
-- What goes with rows of catalog.skus, whoever deletes them: the ledger, prices with a line in their history, products, rates, draws. A trigger
-- and no foreign keys: these would check each row that a baseline or an answer inserts, and lock its SKU for it. The
-- ledger is locked in order of sku, as everyone locks it; history is written last.
CREATE OR REPLACE FUNCTION catalog_internal.forget_with_skus() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    TRUNCATE catalog_internal.due, catalog_internal.unreported_moves, catalog_internal.live_rates, catalog_internal.random_looks, catalog_internal.live_backlog, catalog.products, catalog.prices;
    RETURN NULL;
  END IF;
  PERFORM FROM catalog_internal.due WHERE sku IN (SELECT sku FROM gone) ORDER BY sku FOR UPDATE;
  DELETE FROM catalog_internal.due USING gone WHERE due.sku = gone.sku;
  DELETE FROM catalog_internal.unreported_moves USING gone WHERE unreported_moves.sku = gone.sku;
  DELETE FROM catalog_internal.live_rates USING gone WHERE live_rates.sku = gone.sku;
  DELETE FROM catalog_internal.random_looks USING gone WHERE random_looks.sku = gone.sku;
  DELETE FROM catalog_internal.live_backlog USING gone WHERE live_backlog.sku = gone.sku;
  DELETE FROM catalog.products USING gone WHERE products.sku = gone.sku;
  IF EXISTS (SELECT FROM catalog.prices JOIN gone USING (sku)) THEN
    PERFORM catalog_internal.lock_changes(), catalog_internal.add_history_chunks();
    WITH priced AS (DELETE FROM catalog.prices USING gone WHERE prices.sku = gone.sku RETURNING prices.sku, prices.size, prices.price)
    INSERT INTO catalog.price_history (sku, size, old_price, new_price, observed_at)
    SELECT sku, size, price, NULL, now() FROM priced WHERE price IS NOT NULL ORDER BY sku, size;
    PERFORM pg_notify('catalog_changes', last_value::text) FROM catalog_internal.change_positions;
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.forget_with_skus() FROM PUBLIC;
