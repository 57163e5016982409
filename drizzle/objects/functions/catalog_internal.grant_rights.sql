-- Creates the roles that sellers are given, and grants them everything they may do, if any of it is missing.
CREATE OR REPLACE FUNCTION catalog_internal.grant_rights() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  role_name text;
  statement text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['catalog_reader', 'catalog_watcher'] LOOP
    CONTINUE WHEN to_regrole(role_name) IS NOT NULL;
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
    EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
    END;
  END LOOP;
  FOR statement IN SELECT * FROM catalog_internal.missing_rights() LOOP
    EXECUTE statement;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.grant_rights() FROM PUBLIC;
