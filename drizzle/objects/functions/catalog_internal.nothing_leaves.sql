-- Why no request leaves now, as a sentence without its full stop; null if requests leave. A daemon exists while the
-- session that its row names does (src/store/setup/instance.ts).
CREATE OR REPLACE FUNCTION catalog_internal.nothing_leaves() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  p catalog_internal.pause;
  c catalog_internal.pace;
  iso CONSTANT text := 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
BEGIN
  IF NOT EXISTS (SELECT FROM catalog_internal.instances i WHERE catalog_internal.session_lives(i.pid, i.backend_start)) THEN
    RETURN 'no daemon is running';
  END IF;
  SELECT * INTO p FROM catalog_internal.pause z WHERE catalog_internal.pause_holds(z);
  IF FOUND THEN
    RETURN format('requests to the partner are paused until %s (by %s)',
      CASE WHEN isfinite(p.until) THEN to_char(p.until, iso) ELSE '`catalog-mirror resume`' END, p.paused_by);
  END IF;
  SELECT * INTO c FROM catalog_internal.pace WHERE backoff_until > clock_timestamp();
  IF FOUND THEN
    RETURN format('the partner rejects requests (%s), and the mirror backs off until %s', c.refusal, to_char(c.backoff_until, iso));
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.nothing_leaves() FROM PUBLIC;
