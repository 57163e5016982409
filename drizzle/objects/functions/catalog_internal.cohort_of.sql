-- How knowledge of a SKU's price becomes outdated. `live` and `unlisted`: by a rate of their own, because nobody
-- reports their moves (`in_manifest` must also be false if the delta has left out a move). `snapshot`: when a snapshot
-- is built, which the delta reports. `reported`: reported, and not requested since. A single expression, like
-- snapshot_target.
CREATE OR REPLACE FUNCTION catalog_internal.cohort_of(price_source text, in_manifest boolean, counts_as_live boolean, is_reported boolean)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN price_source IS NOT DISTINCT FROM 'live' OR counts_as_live THEN 'live'
    WHEN NOT in_manifest THEN 'unlisted'
    WHEN is_reported THEN 'reported'
    ELSE 'snapshot'
  END;
END;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.cohort_of(text, boolean, boolean, boolean) TO PUBLIC;
