-- Ends the pause of bulk calls after failures, unless an operator made it endless. The failures stay counted: what
-- keeps calls from working pauses them again, and for longer. Returns whether there was such a pause.
CREATE OR REPLACE FUNCTION catalog_internal.resume_calls() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE catalog_internal.tasks t SET next_at = clock_timestamp()
  WHERE catalog_internal.calls_are_paused(t) AND t.next_at < 'infinity';
  RETURN FOUND;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.resume_calls() FROM PUBLIC;
