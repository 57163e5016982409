-- Which database this is: what initdb drew for the cluster; the numbers of the database in it and of its sequence of positions,
-- which is made anew where a dump is loaded; and the timeline, which a promoted standby and a recovery to a point in time
-- move on. Null is what this server does not tell this role; a restored image of the disk differs in nothing.
CREATE OR REPLACE FUNCTION catalog_internal.present_lineage(OUT system text, OUT database text, OUT timeline text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT format('%s.%s', d.oid, 'catalog_internal.change_positions'::regclass::oid) INTO database
  FROM pg_database d WHERE d.datname = current_database();
  BEGIN
    SELECT c.system_identifier::text INTO system FROM pg_control_system() c;
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  BEGIN
    timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.present_lineage() FROM PUBLIC;
