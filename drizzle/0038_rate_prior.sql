ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "prior_part" real;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "long_prior" real;--> statement-breakpoint
ALTER TABLE "catalog_internal"."live_rates" ADD COLUMN "short_prior" real;
--> statement-breakpoint
-- The probability that the partner, asked now, would answer what it answered `minutes` ago: for a SKU as a whole, or for one of
-- its sizes, of which only a part moves when the SKU does. `minutes` is not null, `rate`, what its own refreshes have taught, is where
-- none has. The cohorts live and unlisted go by_rate; `reported` is one of the others (cohort_of).
--
-- By a rate of its own: moves come by chance at a rate of which a gamma distribution is believed (alpha, beta in minutes), so that
-- none comes in t minutes with (1 + t / beta) ^ -alpha. Rates are learned from alpha 0.8 and beta 120 on, whatever the market
-- (src/store/rate-prior.ts); here what is left of that (prior_part) counts as what all refreshes have taught of such SKUs.
-- Where its line moves (src/sync/live/releases.ts), it has not moved with it with exp(-hazard), nor has any of its sizes; likewise where somebody
-- has hinted at it (src/sync/live/hints.ts).
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
    THEN exp(-least(60, coalesce(rate.alpha, 0.8) * ln(
      1 + minutes / (coalesce(rate.beta, 120) + coalesce(rate.prior_part, least(1, rate.beta / 120)) * (held.live_prior_minutes - 120))
        * CASE WHEN of_size THEN (coalesce(rate.sizes_moved, 0) + 20 * held.live_moved_part) / (coalesce(rate.sizes_seen, 0) + 20) ELSE 1 END
    ) + coalesce(rate.hazard, 0) + coalesce(rate.hint_hazard, 0)))
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
    'scope', (
      SELECT jsonb_build_object('in_scope', d.outside_due_at IS NULL, 'asked_for_metadata', d.outside_due_at IS NOT NULL AND d.reason = 'scope', 'rules', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('kind', r.kind, 'value', r.name, 'include', r.include)
          ORDER BY r.kind = 'sku' DESC, r.include, r.kind, length(r.name) DESC, r.name), '[]')
        FROM (SELECT) one LEFT JOIN catalog.products pr ON pr.sku = s.sku
        CROSS JOIN LATERAL catalog_internal.scope_rules_of(s.sku, pr.brand, pr.model, pr.category) r
      ))
      FROM catalog_internal.scoping g WHERE g.scoped
    ),
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
        THEN (coalesce(l.beta, 120) + coalesce(l.prior_part, least(1, l.beta / 120)) * (e.live_prior_minutes - 120)) / coalesce(l.alpha, 0.8) END,
      'own_rate', l.sku IS NOT NULL,
      'moved_with_line', CASE WHEN c.cohort IN ('live', 'unlisted') AND l.hazard > 0 THEN 1 - exp(-least(60, l.hazard)) END,
      'hinted_by', (
        SELECT jsonb_agg(jsonb_build_object('source', q.source, 'at', q.hinted_at, 'moved', 1 - exp(-q.hazard)) ORDER BY q.hinted_at, q.source)
        FROM catalog_internal.waiting_hints q WHERE q.sku = s.sku
      ),
      'sizes_that_move', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.sizes_moved, 0) + 20 * e.live_moved_part) / (coalesce(l.sizes_seen, 0) + 20) ELSE e.snapshot_moved_part END,
      'looks', k.looks, 'right_share', k.right_share, 'claimed_share', k.claimed_share
    ),
    'next', jsonb_build_object(
      'look_at', t.next_look_at, 'due_at', CASE WHEN isfinite(d.due_at) THEN d.due_at END, 'reason', d.reason, 'is_due', t.owed, 'lane', t.owed_lane,
      'under_way', d.claim IS NOT NULL, 'held_until', d.held_until, 'deferrals', t.deferrals, 'failures', t.failures, 'watched', w.weight
    ),
    'promise', (
      SELECT jsonb_build_object('max_age_seconds', extract(epoch FROM m.max_age)::float8, 'feasible', m.feasible, 'kept_share', m.kept_share, 'because', m.because)
      FROM catalog.promises m WHERE m.sku = s.sku
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

COMMENT ON FUNCTION catalog.explain(text) IS 'Where each number of a SKU comes from, as JSON: whether it is in scope, and by which rules of catalog.scope (the first decides; null: MIRROR_SCOPE is catalog); the answer, and why it was asked for; the report of the delta; how likely the prices are right, and what speaks against them; what is believed of its changes; the next refresh; each size with the price before. Null: the SKU is not known.';
