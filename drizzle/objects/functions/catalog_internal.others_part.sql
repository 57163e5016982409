-- Milliseconds that one of the sequences of others_sent counts: a fifteenth of the window plus its guard
-- (src/pace/policy.ts, guardMs), so that sixteen cover both.
CREATE OR REPLACE FUNCTION catalog_internal.others_part() RETURNS bigint
LANGUAGE sql STABLE
RETURN (SELECT ceil((rate_window + least(0.5, rate_window / 20)) * 1000 / 15)::bigint FROM catalog_internal.settings);

REVOKE ALL ON FUNCTION catalog_internal.others_part() FROM PUBLIC;
