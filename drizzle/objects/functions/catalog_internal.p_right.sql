-- The probability that the partner, asked now, would answer what it answered `minutes` ago: for a SKU as a whole, or
-- for one of its sizes, of which only a share moves when the SKU does. `minutes` is not null; `rate` is what the SKU's
-- own refreshes have taught, if any. The cohorts live and unlisted go by_rate. `reported` is one of the others
-- (cohort_of), and null if an answer to a report contained nothing new and is to be repeated: a cache may have had the
-- old price. By a rate of its own: moves occur at random, at a rate with a gamma distribution (alpha, beta in
-- minutes), so none occurs in t minutes with probability (1 + t / beta) ^ -alpha. Rates are learned from alpha 0.8 and
-- beta 120 in every market (src/store/live/rate-prior.ts); here, what is left of that (prior_part) counts as what all
-- refreshes have taught about such SKUs. If its line moves (src/sync/live/releases.ts), neither it nor any of its
-- sizes has moved with it with probability exp(-hazard); likewise if somebody has hinted at it
-- (src/sync/live/hints.ts). Snapshot-priced: the product of three: no move that waits to be reported, or was reported;
-- none that is never reported; and none since reports stopped, by the rate of all, which differs between SKUs like a
-- gamma distribution of shape 1/2. A single expression, so that the planner inlines it, with as few operations as
-- possible, because a scan computes it for each price. Bounded below by exp(-60), because a real cannot represent
-- numbers below exp(-87).
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
    ELSE (1 - CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END * CASE WHEN reported THEN held.reported_moves WHEN reported IS NULL THEN greatest(held.late_moves, held.waiting_moves) ELSE held.waiting_moves END)
      * exp(-least(60, held.missed_rate * minutes * CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END))
      / CASE WHEN held.silent_minutes = 0 THEN 1
             ELSE sqrt(1 + 2 * held.move_rate * least(minutes, held.silent_minutes) * CASE WHEN of_size THEN held.snapshot_moved_part ELSE 1 END)
        END
  END;
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.p_right(boolean, boolean, boolean, float8, catalog_internal.live_rates, catalog_internal.held_beliefs) TO PUBLIC;
