-- Requests a refresh of SKUs for a seller. The mirror marks them once the caller's transaction is committed, before
-- its next call (take_refreshes).
CREATE OR REPLACE FUNCTION catalog.refresh(skus text[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked record;
  why text;
BEGIN
  SELECT * INTO asked FROM catalog_internal.ask_refresh(refresh.skus, false);
  IF cardinality(asked.known) > 0 THEN
    why := catalog_internal.nothing_leaves();
    IF why IS NOT NULL THEN
      RAISE WARNING 'nothing is refreshed now: %', why USING HINT = 'The SKUs stay due.';
    END IF;
  END IF;
  RETURN cardinality(asked.known);
END
$$;

REVOKE ALL ON FUNCTION catalog.refresh(text[]) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.refresh(text[]) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.refresh(text[]) IS 'Has SKUs asked for before everything else, and ends what holds them back after errors and deferrals. Returns how many are due now: unknown ones, those out of scope and nulls are left out, and each counts once. At most 1,000 a call, and a quarter of the mirror''s requests for all callers together; above that it fails with SQLSTATE CM004 and says when to try again. Does not wait: catalog.refresh_now does.';
