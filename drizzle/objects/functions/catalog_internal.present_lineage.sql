-- The identity of this database: the cluster's identifier from initdb; the oids of the database and of its sequence of
-- positions, which is created anew when a dump is loaded; the timeline, which changes with the promotion of a standby
-- and with a point-in-time recovery; and when the server was started, because an image of the disk can only be put
-- back while it is stopped. Null is what this server does not tell this role.
CREATE OR REPLACE FUNCTION catalog_internal.present_lineage(OUT system text, OUT database text, OUT timeline text, OUT started text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT format('%s.%s', d.oid, 'catalog_internal.change_positions'::regclass::oid) INTO database
  FROM pg_database d WHERE d.datname = current_database();
  started := extract(epoch FROM pg_postmaster_start_time())::text;
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
