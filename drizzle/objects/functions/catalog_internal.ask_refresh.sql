-- Records a seller's request for SKUs. It locks nothing that the mirror needs, however long the caller's transaction
-- stays open. Returns those that are known and in scope, each with its generation before the mark: an answer to a
-- later one was requested after this call. A SKU that somebody has already requested, or that the next call contains
-- anyway, costs nothing, and is not recorded twice unless somebody waits for the answer. Any other costs its share of
-- a call; while calls fail, at least one call, because the request makes them be tried again. One-row tables are read
-- separately: nothing ever analyzes some of them, so the planner assumes hundreds of rows in each, and joined with
-- them it would take a few SKUs for so many that it reads the whole ledger. A SERIALIZABLE caller does not read what
-- others have requested, and pays for it again: callers that read it and add to it would make each other fail.
CREATE OR REPLACE FUNCTION catalog_internal.ask_refresh(skus text[], waits boolean, OUT known text[], OUT generations integer[], OUT missing text[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' SET enable_seqscan = off SET jit = off AS $$
DECLARE
  most CONSTANT integer := 1000;
  wanted text[] := ARRAY(SELECT DISTINCT w.sku FROM unnest(ask_refresh.skus) AS w(sku) WHERE w.sku IS NOT NULL);
  asked text[];
  apart boolean := current_setting('transaction_isolation') = 'serializable';
  others_at_once float8 := (SELECT g.bulk_max_skus FROM catalog_internal.settings g);
  live_at_once float8 := coalesce((SELECT y.live_budget FROM catalog_internal.sync y), (SELECT g.bulk_live_budget FROM catalog_internal.settings g));
  incident boolean := (SELECT l.incident_since IS NOT NULL FROM catalog_internal.live_plan l);
  calls float8;
  wait float8;
BEGIN
  IF cardinality(wanted) > most THEN
    PERFORM nextval('catalog_internal.refreshes_refused');
    RAISE EXCEPTION '% SKUs are too many for one call', cardinality(wanted)
      USING ERRCODE = 'CM004', HINT = format('Ask for %s at a time.', most);
  END IF;
  SELECT array_agg(k.sku), array_agg(k.generation),
    array_agg(k.sku) FILTER (WHERE NOT k.requested AND (ask_refresh.waits OR NOT k.next OR k.rank < 'Infinity')),
    coalesce(sum(k.part) FILTER (WHERE NOT k.requested AND NOT k.next), 0)
  INTO known, generations, asked, calls
  FROM (
    SELECT d.sku, d.generation, d.rank,
      CASE WHEN apart THEN false ELSE EXISTS (SELECT FROM catalog_internal.refresh_requests r WHERE r.sku = d.sku OFFSET 0) END AS requested,
      d.lane = 1 AND d.due_at <= clock_timestamp() AND d.held_until IS NULL AND d.largest_call IS NULL AS next,
      1 / greatest(1, CASE WHEN d.largest_call IS NOT NULL THEN d.largest_call WHEN d.live OR incident THEN live_at_once ELSE others_at_once END) AS part
    FROM unnest(wanted) AS w(sku)
    CROSS JOIN LATERAL (SELECT d.* FROM catalog_internal.due d WHERE d.sku = w.sku AND d.outside_due_at IS NULL OFFSET 0) d
    WHERE EXISTS (SELECT FROM catalog.skus s WHERE s.sku = w.sku OFFSET 0)
  ) k;
  known := coalesce(known, '{}');
  missing := ARRAY(SELECT w.sku FROM unnest(wanted) AS w(sku) WHERE w.sku <> ALL (known) ORDER BY w.sku);
  IF calls > 0 AND EXISTS (SELECT FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t)) THEN
    calls := greatest(calls, 1);
  END IF;
  wait := catalog_internal.pay_refreshes(calls, cardinality(known));
  IF wait = 'Infinity' THEN
    PERFORM nextval('catalog_internal.refreshes_refused');
    RAISE EXCEPTION 'these % SKUs take more requests than refreshes from SQL have in a minute', cardinality(known)
      USING ERRCODE = 'CM004', HINT = 'Ask for fewer at a time: about five live ones go into a request.';
  ELSIF wait > 0 THEN
    PERFORM nextval('catalog_internal.refreshes_refused');
    RAISE EXCEPTION 'refreshes from SQL have used up their quarter of the requests'
      USING ERRCODE = 'CM004', HINT = format('Try again in %s s.', ceil(wait));
  END IF;
  INSERT INTO catalog_internal.refresh_requests (sku) SELECT unnest(asked);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.ask_refresh(text[], boolean) FROM PUBLIC;
