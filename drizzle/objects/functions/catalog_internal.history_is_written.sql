-- For each INSERT, whoever sends it: also a daemon of an earlier version that still runs beside this one, or a
-- person. Before the statement, so before the defaults of its first row draw a position.
CREATE OR REPLACE FUNCTION catalog_internal.history_is_written() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM catalog_internal.lock_changes();
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_is_written() FROM PUBLIC;

CREATE OR REPLACE TRIGGER in_order BEFORE INSERT ON catalog.price_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();
CREATE OR REPLACE TRIGGER in_order BEFORE INSERT ON catalog.product_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();
