-- The present time, for `(SELECT catalog_internal.moment())`, which is evaluated once per execution of a query, so
-- that all of its rows are judged at one moment, also by parallel workers. statement_timestamp() is the time of the
-- client's message: inside a function, a procedure, a DO block or a query of several statements it stands still, while
-- each statement there sees what was committed since. STABLE, because a volatile expression would change the plan (a
-- CTE of sku_trust would be read as a whole); in PL/pgSQL, so that the planner does not inline it.
CREATE OR REPLACE FUNCTION catalog_internal.moment() RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN clock_timestamp();
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.moment() TO PUBLIC;
