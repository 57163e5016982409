-- The last step of catalog.refresh_now: fails if not all SKUs are answered, and says why.
CREATE OR REPLACE FUNCTION catalog.refresh_end(ticket jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  iso CONSTANT text := 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
  missing integer := coalesce(jsonb_array_length(ticket -> 'skus'), 0);
  why text := catalog_internal.nothing_leaves();
  failing timestamptz;
  named text;
BEGIN
  IF missing = 0 THEN
    RETURN;
  END IF;
  SELECT t.next_at INTO failing FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t);
  SELECT string_agg(format('%s (%s)', n.sku, n.state), ', ' ORDER BY n.place) FILTER (WHERE n.place <= 10),
    coalesce(why, 'bulk calls fail, and the next one is made '
      || CASE WHEN isfinite(failing) THEN 'at ' || to_char(failing, iso) WHEN NOT isfinite(failing) THEN 'when an operator says so' END,
      format('%s asked for at the moment, %s put off by the partner, %s waiting for their turn',
        count(*) FILTER (WHERE n.state = 'asked for'), count(*) FILTER (WHERE n.held_until IS NOT NULL), count(*) FILTER (WHERE n.state = 'due')))
  INTO named, why
  FROM (
    SELECT t.place, t.sku, CASE WHEN d.claim IS NULL THEN d.held_until END AS held_until,
      CASE WHEN d.claim IS NOT NULL THEN 'asked for'
        WHEN d.outside_due_at IS NOT NULL THEN 'out of scope'
        WHEN d.sku IS NULL AND NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = t.sku) THEN 'not in the catalog any longer'
        -- Also where the daemon has not read yet that it was asked for.
        WHEN d.held_until IS NULL THEN 'due'
        ELSE format('%s until %s', CASE WHEN d.failures > 0 THEN 'failed' ELSE 'deferred' END, to_char(d.held_until, iso)) END AS state
    FROM jsonb_array_elements_text(ticket -> 'skus') WITH ORDINALITY AS t(sku, place) LEFT JOIN catalog_internal.due d ON d.sku = t.sku
  ) n;
  RAISE EXCEPTION '% of % SKUs were answered within % s: %', (ticket ->> 'asked')::integer - missing, ticket ->> 'asked',
    round((ticket ->> 'waited')::numeric, 1), why
    USING ERRCODE = 'CM003', DETAIL = 'Not answered: ' || named || CASE WHEN missing > 10 THEN ', …' ELSE '' END,
    HINT = 'They stay due; catalog.sku_trust tells when each is expected to be refreshed.';
END
$$;

REVOKE ALL ON FUNCTION catalog.refresh_end(jsonb) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.refresh_end(jsonb) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.refresh_end(jsonb) IS 'A step of catalog.refresh_now, which calls it.';
