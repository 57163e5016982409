-- Pays for refreshes from SQL that are worth this many bulk calls, and counts their SKUs. They have a quarter of the
-- mirror's calls, and at most a minute's worth at once: a call is paid by advancing the time up to which everything is
-- paid, to at most a minute from now. What is paid stays paid even if the caller rolls back: therefore the sequence,
-- and a lock that ends at once with a subtransaction (as in catalog.take_request). Returns after how many seconds to
-- try again; 0: it is paid, infinity: it is worth more than a minute's calls.
CREATE OR REPLACE FUNCTION catalog_internal.pay_refreshes(calls float8, skus integer) RETURNS float8
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  minute CONSTANT float8 := 60e6;
  most float8;
  moment float8;
  paid float8;
  wait float8;
BEGIN
  SELECT greatest(1, s.rate_share * 60 / s.rate_window / 4) INTO most FROM catalog_internal.settings s;
  IF calls > most THEN
    RETURN 'Infinity';
  END IF;
  BEGIN
    LOCK TABLE catalog_internal.lock_refreshes IN EXCLUSIVE MODE;
    moment := extract(epoch FROM clock_timestamp()) * 1e6;
    paid := coalesce(pg_sequence_last_value('catalog_internal.refreshes_paid'), 0);
    -- Later than it can be: the clock was ahead.
    IF paid > moment + minute OR paid < moment THEN
      paid := moment;
    END IF;
    paid := paid + calls / most * minute;
    wait := greatest(0, paid - moment - minute) / 1e6;
    IF wait = 0 THEN
      PERFORM setval('catalog_internal.refreshes_paid', floor(paid)::bigint),
        setval('catalog_internal.refreshes_asked', coalesce(pg_sequence_last_value('catalog_internal.refreshes_asked'), 0) + skus);
    END IF;
    RAISE SQLSTATE 'CM000';
  EXCEPTION
    WHEN SQLSTATE 'CM000' THEN NULL;
    WHEN lock_not_available THEN wait := 1;
  END;
  RETURN wait;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.pay_refreshes(float8, integer) FROM PUBLIC;
