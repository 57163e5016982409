-- SKUs of one brand and model that move together are refreshed together.
CREATE TABLE "catalog_internal"."live_lines" (
	"line" bigint PRIMARY KEY NOT NULL,
	"brand" text NOT NULL,
	"model" text NOT NULL,
	"step" integer NOT NULL,
	"phase" text NOT NULL,
	"evidence" double precision NOT NULL,
	"weighed_at" timestamp with time zone NOT NULL,
	"since" timestamp with time zone,
	"answers" integer NOT NULL,
	"moved" integer NOT NULL,
	"hits" double precision NOT NULL,
	"misses" double precision NOT NULL,
	CONSTRAINT "live_lines_phase" CHECK ("catalog_internal"."live_lines"."phase" in ('quiet', 'suspected', 'released'))
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."releases" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"threshold" double precision DEFAULT 6 NOT NULL,
	"wholesale_rate" double precision DEFAULT 1.0 / 1500 NOT NULL,
	"early" double precision DEFAULT 0 NOT NULL,
	"early_at" timestamp with time zone DEFAULT now() NOT NULL,
	"suspected" bigint DEFAULT 0 NOT NULL,
	"confirmed" bigint DEFAULT 0 NOT NULL,
	"dismissed" bigint DEFAULT 0 NOT NULL,
	"refreshes" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "releases_one_row" CHECK ("catalog_internal"."releases"."id")
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "hazard" double precision;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "wholesale_moves" real;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "wholesale_minutes" real;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "line" bigint;--> statement-breakpoint
CREATE INDEX "live_rates_line" ON "catalog_internal"."live_rates" USING btree ("line") WHERE line is not null;
--> statement-breakpoint
INSERT INTO catalog_internal.releases DEFAULT VALUES;
--> statement-breakpoint
ALTER TABLE catalog_internal.live_lines SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
--> statement-breakpoint
ALTER TABLE catalog_internal.releases SET (fillfactor = 10);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.live_lines IS 'Lines (one brand and model) of live SKUs, and whether their SKUs move together at present.';
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.releases IS 'One row: what is known of all lines of live SKUs, and what became of suspicions that one moves.';
--> statement-breakpoint
-- The line of a SKU: one brand and model. By a hash, as both may be longer than an index takes. Null: one of them is not known.
CREATE OR REPLACE FUNCTION catalog_internal.line_of(brand text, model text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN btrim(brand) <> '' AND btrim(model) <> '' THEN hashtextextended(brand, hashtextextended(model, 0)) END;
END;

REVOKE ALL ON FUNCTION catalog_internal.line_of(text, text) FROM PUBLIC;
--> statement-breakpoint
-- The probability that the partner, asked now, would answer what it answered `minutes` ago: for a SKU as a whole, or for one of
-- its sizes, of which only a part moves when the SKU does. `minutes` is not null, `rate`, what its own refreshes have taught, is where
-- none has. The cohorts live and unlisted go by_rate; `reported` is one of the others (cohort_of).
--
-- By a rate of its own: moves come by chance at a rate of which a gamma distribution is believed (alpha, beta in minutes), so that
-- none comes in t minutes with (1 + t / beta) ^ -alpha. Rates are learned from one move in 120 minutes on, whatever the market
-- (src/sync/live/policy.ts); here that part of beta counts as what all refreshes have taught of such SKUs (src/store/rate-prior.ts).
-- Where its line moves (src/sync/live/releases.ts), it has not moved with it with exp(-hazard), nor has any of its sizes.
-- Snapshot-priced: the product of three: no move that waits to be reported, or of which a report is there; none that is never
-- reported; and none since reports fell silent, by the rate of all, which differs between SKUs as a gamma distribution of shape 1/2.
--
-- A single expression, so that the planner sees through it, and with as few operations as it takes: a scan computes it for each price. Bounded below by exp(-60), as a real is no number beyond exp(-87).
CREATE OR REPLACE FUNCTION catalog_internal.p_right(
  by_rate boolean, reported boolean, of_size boolean, minutes float8, rate catalog_internal.live_rates, held catalog_internal.held_beliefs
) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN by_rate
    THEN exp(-least(60, coalesce(rate.alpha, 1) * ln(
      1 + minutes / (coalesce(rate.beta, 120) + least(120, coalesce(rate.beta, 120)) * (held.live_prior_minutes / 120 - 1))
        * CASE WHEN of_size THEN (coalesce(rate.sizes_moved, 0) + 20 * held.live_moved_part) / (coalesce(rate.sizes_seen, 0) + 20) ELSE 1 END
    ) + coalesce(rate.hazard, 0)))
    ELSE (1 - CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END * CASE WHEN reported THEN held.reported_moves ELSE held.waiting_moves END)
      * exp(-least(60, held.missed_rate * minutes * CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END))
      / CASE WHEN held.silent_minutes = 0 THEN 1
             ELSE sqrt(1 + 2 * held.move_rate * least(minutes, held.silent_minutes) * CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END)
        END
  END;
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.p_right(boolean, boolean, boolean, float8, catalog_internal.live_rates, catalog_internal.held_beliefs) TO PUBLIC;
--> statement-breakpoint
-- Everything that is known of one SKU and decides what its prices are worth, for whoever doubts one of them. Null: it is not known.
-- With the owner's rights, as most of it is nobody's to read as a whole.
CREATE OR REPLACE FUNCTION catalog.explain(of_sku text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'sku', s.sku,
    'at', now(),
    'state', s.state,
    'price_source', s.price_source,
    'in_manifest', s.in_manifest,
    'product', (
      SELECT jsonb_build_object('name', pr.name, 'brand', pr.brand, 'model', pr.model, 'size_type', pr.size_map_size_type, 'refreshed_at', pr.refreshed_at)
      FROM catalog.products pr WHERE pr.sku = s.sku
    ),
    'answer', jsonb_build_object(
      'asked_at', s.asked_at, 'because', d.asked_because, 'priced_at', s.priced_at, 'first_priced_at', s.first_priced_at,
      'age_seconds', extract(epoch FROM t.price_age)::float8
    ),
    'report', jsonb_build_object(
      'reported_at', s.reported_at, 'removed_at', s.removed_at, 'asked_since', s.reported_at IS NOT NULL AND coalesce(s.asked_at >= s.reported_at, false)
    ),
    'trust', jsonb_build_object(
      'p_right', t.p_right, 'size_p_right', t.size_p_right, 'confidence', e.confidence, 'actionable', t.actionable, 'doubt', t.doubt,
      'doubted', CASE WHEN d.doubt IS NOT NULL THEN jsonb_build_object('oddity', d.oddity, 'since', d.doubted_at, 'before', d.believed) END,
      'stale', t.stale, 'past_target', t.past_target, 'target_seconds', extract(epoch FROM t.target_age)::float8
    ),
    'belief', jsonb_build_object(
      'cohort', c.cohort,
      'minutes_between_changes', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.beta, 120) + least(120, coalesce(l.beta, 120)) * (e.live_prior_minutes / 120 - 1)) / coalesce(l.alpha, 1) END,
      'own_rate', l.sku IS NOT NULL,
      'moved_with_line', CASE WHEN c.cohort IN ('live', 'unlisted') AND l.hazard > 0 THEN 1 - exp(-least(60, l.hazard)) END,
      'sizes_that_move', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.sizes_moved, 0) + 20 * e.live_moved_part) / (coalesce(l.sizes_seen, 0) + 20) ELSE e.snapshot_moved_part END,
      'looks', k.looks, 'right_share', k.right_share, 'claimed_share', k.claimed_share
    ),
    'next', jsonb_build_object(
      'look_at', t.next_look_at, 'due_at', CASE WHEN isfinite(d.due_at) THEN d.due_at END, 'reason', d.reason, 'is_due', t.owed, 'lane', t.owed_lane,
      'under_way', d.claim IS NOT NULL, 'held_until', d.held_until, 'deferrals', t.deferrals, 'failures', t.failures, 'watched', w.weight
    ),
    'prices', coalesce((
      SELECT jsonb_agg(jsonb_build_object(
        'size', p.size, 'price', p.price, 'since', p.changed_at, 'actionable', t.size_actionable AND p.price IS NOT NULL,
        'before', CASE WHEN h.id IS NOT NULL THEN jsonb_build_object('price', h.old_price, 'until', h.observed_at) END
      ) ORDER BY p.size)
      FROM catalog.prices p
      LEFT JOIN LATERAL (
        SELECT h.id, h.old_price, h.observed_at FROM catalog.price_history h WHERE h.sku = p.sku AND h.size = p.size ORDER BY h.id DESC LIMIT 1
      ) h ON true
      WHERE p.sku = s.sku
    ), '[]')
  )
  FROM catalog.skus s
  JOIN catalog.sku_trust t ON t.sku = s.sku
  LEFT JOIN catalog_internal.due d ON d.sku = s.sku
  LEFT JOIN catalog_internal.live_rates l ON l.sku = s.sku
  LEFT JOIN catalog_internal.watched w ON w.sku = s.sku
  CROSS JOIN catalog_internal.price_beliefs() e
  CROSS JOIN LATERAL (
    SELECT catalog_internal.cohort_of(s.price_source, s.in_manifest, coalesce(d.live, false), t.owed AND d.reason = 'changed') AS cohort
  ) c
  LEFT JOIN LATERAL (
    SELECT sum(looks)::bigint AS looks, sum(looks * right_share) / nullif(sum(looks), 0) AS right_share,
           sum(looks * claimed_share) / nullif(sum(looks), 0) AS claimed_share
    FROM catalog.calibration WHERE cohort = c.cohort
  ) k ON true
  WHERE s.sku = of_sku
$$;

REVOKE ALL ON FUNCTION catalog.explain(text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.explain(text) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.explain(text) IS 'Where each number of a SKU comes from, as JSON: the answer, and why it was asked for; the report of the delta; how likely the prices are right, and what speaks against them; what is believed of its changes; the next refresh; each size with the price before. Null: the SKU is not known.';
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
  -- Calls that store a line, or count a release, are not waited for: what they date is taken for new (src/sync/live/releases.ts).
  UPDATE catalog_internal.live_lines SET weighed_at = catalog_internal.happened(weighed_at, moment, shift),
    since = catalog_internal.happened(since, moment, shift)
  WHERE ctid = ANY (ARRAY(SELECT ctid FROM catalog_internal.live_lines WHERE weighed_at > moment OR since > moment FOR UPDATE SKIP LOCKED));
  UPDATE catalog_internal.releases SET early_at = catalog_internal.happened(early_at, moment, shift)
  WHERE id IN (SELECT id FROM catalog_internal.releases WHERE early_at > moment FOR UPDATE SKIP LOCKED);
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

REVOKE ALL ON FUNCTION catalog_internal.set_back_clock() FROM PUBLIC;
