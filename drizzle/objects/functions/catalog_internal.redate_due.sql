-- Corrects what a clock that was ahead has written into the ledger, for at most the given number of SKUs after the
-- named one. A mark makes its SKU due at once, so no mark lies in the future; what waits, and what that clock
-- scheduled after an answer, comes earlier by as much as it was ahead. Returns the last of these SKUs, or null if
-- there are no more.
CREATE OR REPLACE FUNCTION catalog_internal.redate_due(shift interval, after text, most integer) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
  -- Lanes of SKUs that are asked by a plan. Of the others each has been marked.
  planned smallint[] := ARRAY[catalog_internal.lane_of('live'), catalog_internal.lane_of('metadata'), catalog_internal.lane_of('sweep')];
  -- Less is not worth it to write so many rows: a price that gets older meanwhile says so.
  worthwhile boolean[] := ARRAY[shift > interval '10 minutes', shift > interval '1 day', shift > interval '1 day'];
  last text;
BEGIN
  WITH ahead AS MATERIALIZED (
    SELECT d.sku, misplanned FROM catalog_internal.due d
    CROSS JOIN LATERAL (
      SELECT due_at > moment AND due_at < 'infinity' AND worthwhile[array_position(planned, lane)]
        AND due_at > (SELECT coalesce(s.asked_at, s.first_seen_at) + shift FROM catalog.skus s WHERE s.sku = d.sku) AS misplanned
    ) p
    WHERE d.sku > after AND (
      held_until > moment OR promised_by > moment OR misplanned OR due_at > moment AND due_at < 'infinity' AND lane <> ALL (planned)
      OR outside_due_at > moment AND outside_due_at < 'infinity' AND shift > interval '10 minutes'
    )
    ORDER BY d.sku LIMIT most FOR UPDATE OF d
  ),
  redated AS (
    UPDATE catalog_internal.due d SET held_until = catalog_internal.awaited(d.held_until, moment, shift),
      promised_at = catalog_internal.awaited(d.promised_at, moment, shift), promised_by = catalog_internal.awaited(d.promised_by, moment, shift),
      outside_due_at = CASE WHEN d.outside_due_at < 'infinity' THEN catalog_internal.awaited(d.outside_due_at, moment, shift) ELSE d.outside_due_at END,
      due_at = CASE
        WHEN a.misplanned THEN catalog_internal.awaited(d.due_at, moment, shift)
        WHEN d.lane = ANY (planned) OR d.due_at = 'infinity' THEN d.due_at
        ELSE least(d.due_at, moment)
      END
    FROM ahead a WHERE d.sku = a.sku
  )
  SELECT max(sku) FROM ahead INTO last;
  RETURN last;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.redate_due(interval, text, integer) FROM PUBLIC;
