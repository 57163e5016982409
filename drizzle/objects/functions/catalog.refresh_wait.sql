-- A step of catalog.refresh_now: waits a moment, and says what is still missing and whether to go on waiting. A SKU is
-- answered once the answer to a request sent after the call is committed: one of a later generation. It does not wait
-- for SKUs that the partner has meanwhile put off beyond the time left (deferred, or an error), nor for SKUs that are
-- no longer in the catalog. A ledger row that somebody deleted is no answer; if it is created anew, every answer to it
-- is to a request after the call.
CREATE OR REPLACE FUNCTION catalog.refresh_wait(INOUT ticket jsonb, OUT waits boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
DECLARE
  waited float8 := (ticket ->> 'waited')::float8;
  remaining float8 := (ticket ->> 'timeout')::float8 - waited;
  step float8 := greatest(0, least(remaining, CASE WHEN waited < 5 THEN 0.05 ELSE 0.25 END));
  past float8;
  skus jsonb;
  after jsonb;
  hopeless boolean;
BEGIN
  IF ticket IS NULL THEN
    waits := false;
    RETURN;
  END IF;
  PERFORM pg_sleep(step);
  -- A clock that is set takes or gives a moment only.
  past := extract(epoch FROM clock_timestamp()) - (ticket ->> 'at')::float8;
  waited := waited + CASE WHEN past BETWEEN 0 AND 5 THEN past ELSE step END;
  remaining := (ticket ->> 'timeout')::float8 - waited;
  SELECT coalesce(jsonb_agg(t.sku), '[]'), coalesce(jsonb_agg(CASE WHEN d.sku IS NULL THEN -1 ELSE w.after END), '[]'), coalesce(bool_and(
    CASE WHEN d.sku IS NULL THEN NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = t.sku)
      ELSE d.claim IS NULL AND coalesce(d.held_until > clock_timestamp() + make_interval(secs => remaining), false)
        AND NOT EXISTS (SELECT FROM catalog_internal.refresh_requests r WHERE r.sku = d.sku) END), true)
  INTO skus, after, hopeless
  FROM ROWS FROM (jsonb_array_elements_text(ticket -> 'skus'), jsonb_array_elements_text(ticket -> 'after') ) AS t(sku, number)
    CROSS JOIN LATERAL (SELECT t.number::integer AS after) w
    LEFT JOIN catalog_internal.due d ON d.sku = t.sku
  WHERE d.asked_generation IS NULL OR d.asked_generation <= w.after;
  waits := NOT hopeless AND remaining > 0;
  ticket := ticket || jsonb_build_object('skus', skus, 'after', after, 'waited', waited, 'at', extract(epoch FROM clock_timestamp()));
  IF NOT waits THEN
    UPDATE catalog_internal.refresh_places p SET pid = NULL, until = NULL WHERE p.pid = pg_backend_pid();
  ELSIF waited - (ticket ->> 'renewed')::float8 > 3 THEN
    UPDATE catalog_internal.refresh_places p SET until = clock_timestamp() + interval '10 seconds' WHERE p.pid = pg_backend_pid();
    ticket := ticket || jsonb_build_object('renewed', waited);
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog.refresh_wait(jsonb) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.refresh_wait(jsonb) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.refresh_wait(jsonb) IS 'A step of catalog.refresh_now, which calls it.';
