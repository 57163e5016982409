-- Whether a session of this database exists that has this number and began then. For another role's session the start
-- is not shown, and all that is known is that none from before the server's start exists. An advisory lock would not
-- do, because anybody who may connect could hold it.
CREATE OR REPLACE FUNCTION catalog_internal.session_lives(pid integer, began timestamptz) RETURNS boolean
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT EXISTS (
    SELECT FROM pg_stat_activity a
    WHERE a.pid = session_lives.pid AND a.datname = current_database() AND (a.backend_start = session_lives.began OR a.backend_start IS NULL AND session_lives.began >= pg_postmaster_start_time())
  );
END;

REVOKE ALL ON FUNCTION catalog_internal.session_lives(integer, timestamptz) FROM PUBLIC;
