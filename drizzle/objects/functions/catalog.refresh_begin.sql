-- The first steps of catalog.refresh_now. `refused` is the error with which Postgres refused a COMMIT inside a block
-- with an exception handler: with it, this only fails if the caller cannot wait. Postgres always refuses such a
-- COMMIT, but where it would refuse any, it gives another reason: the same as here, in a function, where none is
-- possible. Without `refused`, it does what catalog.refresh does and takes a place among the waiting callers. Returns
-- what to wait for, or null if there is nothing.
CREATE OR REPLACE FUNCTION catalog.refresh_begin(skus text[], timeout interval, refused text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
DECLARE
  longest CONSTANT integer := 600;
  seconds float8 := extract(epoch FROM refresh_begin.timeout);
  asked record;
  why text;
BEGIN
  IF refused IS NOT NULL THEN
    BEGIN
      COMMIT;
    EXCEPTION WHEN invalid_transaction_termination THEN
      IF SQLERRM = refused THEN
        RAISE EXCEPTION 'catalog.refresh_now cannot wait inside of a transaction or a function' USING ERRCODE = 'active_sql_transaction',
          HINT = 'Send CALL as a statement of its own, with autocommit. Inside of a transaction use SELECT catalog.refresh(…), which does not wait.';
      END IF;
    END;
    RETURN NULL;
  END IF;
  IF seconds IS NULL OR seconds NOT BETWEEN 0 AND longest THEN
    RAISE EXCEPTION 'timeout: expected an interval from 0 to 10 minutes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- For as long as it is renewed (refresh_wait); later than that it cannot be, unless the clock was ahead.
  UPDATE catalog_internal.refresh_places p SET pid = pg_backend_pid(), until = clock_timestamp() + interval '10 seconds'
  WHERE p.place = (
    SELECT f.place FROM catalog_internal.refresh_places f
    WHERE f.pid IS NULL OR f.pid = pg_backend_pid() OR f.until NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'
    ORDER BY f.pid IS DISTINCT FROM pg_backend_pid() LIMIT 1 FOR UPDATE SKIP LOCKED
  );
  IF NOT FOUND THEN
    PERFORM nextval('catalog_internal.refreshes_refused');
    RAISE EXCEPTION 'too many sessions wait in catalog.refresh_now' USING ERRCODE = 'CM004',
      HINT = 'Try again in some seconds, or use SELECT catalog.refresh(…), which does not wait.';
  END IF;
  SELECT * INTO asked FROM catalog_internal.ask_refresh(refresh_begin.skus, true);
  IF cardinality(asked.missing) > 0 THEN
    RAISE WARNING '% of the SKUs are not in the catalog, or out of scope: %', cardinality(asked.missing),
      array_to_string(asked.missing[1:5], ', ') || CASE WHEN cardinality(asked.missing) > 5 THEN ', …' ELSE '' END;
  END IF;
  IF cardinality(asked.known) = 0 THEN
    UPDATE catalog_internal.refresh_places p SET pid = NULL, until = NULL WHERE p.pid = pg_backend_pid();
    RETURN NULL;
  END IF;
  why := catalog_internal.nothing_leaves();
  IF why IS NOT NULL THEN
    RAISE WARNING 'nothing is refreshed now: %', why USING HINT = 'The SKUs stay due.';
  END IF;
  RETURN jsonb_build_object('skus', asked.known, 'after', asked.generations, 'asked', cardinality(asked.known), 'timeout', seconds,
    'waited', 0, 'renewed', 0, 'at', extract(epoch FROM clock_timestamp()));
END
$$;

REVOKE ALL ON FUNCTION catalog.refresh_begin(text[], interval, text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.refresh_begin(text[], interval, text) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.refresh_begin(text[], interval, text) IS 'A step of catalog.refresh_now, which calls it.';
