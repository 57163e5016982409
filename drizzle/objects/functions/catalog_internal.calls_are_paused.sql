-- Whether bulk calls wait after failures, by the row of their task: until next_at, which an operator may have set to
-- infinity (resume_calls). A single expression, and VOLATILE like delta_is_late.
CREATE OR REPLACE FUNCTION catalog_internal.calls_are_paused(t catalog_internal.tasks) RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
  SELECT t.task = 'reprice' AND t.failures > 0 AND t.next_at > clock_timestamp();
END;

REVOKE ALL ON FUNCTION catalog_internal.calls_are_paused(catalog_internal.tasks) FROM PUBLIC;
