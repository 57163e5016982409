-- SKUs are asked for now, and it returns when the partner's answers are committed. Each step is a transaction
-- of its own, so the wait holds no lock and no snapshot; and each is READ COMMITTED, whatever the session begins
-- its transactions with: those who wait write the same few rows, and one that goes by a snapshot would fail for
-- what another has written. A procedure that commits has its caller's rights and search_path: hence nothing here
-- is named without its schema, and no operator is used; all else is in functions that run as the mirror.
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
