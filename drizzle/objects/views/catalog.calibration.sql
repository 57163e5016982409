-- The counts of src/store/trust/calibration.ts, as sellers read them.
CREATE OR REPLACE VIEW catalog.calibration AS
SELECT c.cohort,
       ((ARRAY[0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])[c.bin + 1])::float8 AS tenth,
       sum(c.looks)::bigint AS looks,
       (sum(c."right") / sum(c.looks))::real AS right_share,
       (sum(c.claimed) / sum(c.looks))::real AS claimed_share,
       min(c.hour) AS since
FROM catalog_internal.calibration_hours c
WHERE c.hour > (SELECT catalog_internal.moment()) - interval '7 days' AND c.hour <= (SELECT catalog_internal.moment())
GROUP BY c.cohort, c.bin;

COMMENT ON VIEW catalog.calibration IS 'How well p_right has held in the last seven days. Each answered refresh is a test of the probability held just before it; where right_share is claimed_share, it was right as often as it said.';
COMMENT ON COLUMN catalog.calibration.cohort IS 'live, unlisted (no manifest lists it, or the delta has left out a change of it), snapshot, reported (by the delta, and asked for that), unreported (snapshot and reported in hours in which the delta told of nothing), again (asked a second time, as the answer to a report had nothing new), or random (live SKUs drawn at random to be refreshed, whatever that is worth: part of live, too); per SKU, and with "sizes" behind it per size.';
COMMENT ON COLUMN catalog.calibration.tenth IS 'Where the probability was: from this on (0, 0.1, … 0.9; the last tenth in three: 0.9, 0.95, 0.99).';
COMMENT ON COLUMN catalog.calibration.looks IS 'Answered refreshes whose probability was there: of SKUs, or of sizes.';
COMMENT ON COLUMN catalog.calibration.right_share IS 'Part of them that found the price as it was held.';
COMMENT ON COLUMN catalog.calibration.claimed_share IS 'Mean of the probabilities held before them.';
COMMENT ON COLUMN catalog.calibration.since IS 'Since when is counted.';
