-- Requests a refresh of SKUs and returns when the partner's answers are committed. Each step is a transaction of its
-- own, so waiting holds no lock and no snapshot. Each is READ COMMITTED, whatever the session's default: waiters write
-- the same few rows, and one with a fixed snapshot would fail because of what another has written. A procedure that
-- commits has its caller's rights and search_path, so every name here is qualified and no operator is used; everything
-- else is in functions that run as the mirror.
CREATE OR REPLACE PROCEDURE catalog.refresh_now(skus text[], timeout interval DEFAULT '00:01:00'::interval)
LANGUAGE plpgsql AS $$
DECLARE
  held pg_catalog.jsonb;
  waits boolean;
  refused pg_catalog.text;
BEGIN
  BEGIN
    COMMIT;
  EXCEPTION WHEN invalid_transaction_termination THEN
    refused := SQLERRM;
  END;
  PERFORM catalog.refresh_begin(NULL, NULL, refused);
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  held := catalog.refresh_begin(refresh_now.skus, refresh_now.timeout, NULL);
  LOOP
    COMMIT AND CHAIN;
    SELECT w.ticket, w.waits INTO held, waits FROM catalog.refresh_wait(held) AS w;
    EXIT WHEN NOT waits;
  END LOOP;
  COMMIT AND CHAIN;
  PERFORM catalog.refresh_end(held);
END
$$;

REVOKE ALL ON PROCEDURE catalog.refresh_now(text[], interval) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON PROCEDURE catalog.refresh_now(text[], interval) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON PROCEDURE catalog.refresh_now(text[], interval) IS 'As catalog.refresh, and returns when the partner''s answers to requests that were sent after the call are committed: prices, or that a SKU is not found. Fails with SQLSTATE CM003 at the timeout (at most 10 minutes), or sooner where the partner puts all that is left off for longer, and says what the mirror is doing. Unknown SKUs are left out, with a warning. Not inside of a transaction or a function. At most 20 sessions wait at once; above that, and above the bounds of catalog.refresh, it fails with SQLSTATE CM004.';
