-- Every follower, and how far it is behind: the number of changes after its position (counted up to 10,000) and how
-- long the first of them has waited. A lost position (CM001) is reported for its follower and hides no other.
CREATE OR REPLACE FUNCTION catalog_internal.followers_now()
RETURNS TABLE (name text, delivery text, "position" bigint, after_sku text, behind integer, behind_seconds double precision, lost boolean,
  held_by text, failures integer, failing_since timestamptz, last_status integer, last_said text, last_at timestamptz, dead_letters integer)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f catalog_internal.followers;
BEGIN
  FOR f IN SELECT * FROM catalog_internal.followers o ORDER BY o.name LOOP
    name := f.name; delivery := f.delivery; "position" := f."position"; after_sku := f.after_sku;
    failures := f.failures; failing_since := f.failing_since; last_status := f.last_status; last_said := f.last_said; last_at := f.last_at;
    held_by := CASE WHEN catalog_internal.session_lives(f.pid, f.backend_start) THEN f.held_by END;
    SELECT count(*) INTO dead_letters FROM catalog_internal.dead_letters d WHERE d.follower = f.name;
    behind := NULL; behind_seconds := NULL; lost := false;
    BEGIN
      SELECT greatest(0, extract(epoch FROM clock_timestamp() - c.observed_at)) INTO behind_seconds FROM catalog.changes(f."position", 1) c;
      behind := CASE WHEN FOUND THEN catalog_internal.changes_after(f."position", 10000) ELSE 0 END;
      behind_seconds := coalesce(behind_seconds, 0);
    EXCEPTION WHEN SQLSTATE 'CM001' THEN
      lost := true;
    END;
    -- Of a first copy the position stands until all of it is taken.
    IF f.after_sku IS NOT NULL AND behind > 0 THEN
      behind_seconds := greatest(0, extract(epoch FROM clock_timestamp() - f.updated_at));
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.followers_now() FROM PUBLIC;
