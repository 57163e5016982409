-- In PL/pgSQL, which plans it for the interval of each call: no older partition of the history is opened or locked,
-- and the planner knows how few rows there are. It has its owner's rights, because readers may not read the milestones
-- that say where the interval begins.
CREATE OR REPLACE FUNCTION catalog.movers(within interval DEFAULT '1 hour', most integer DEFAULT 100)
RETURNS TABLE (sku text, size text, old_price integer, new_price integer, change integer, change_ratio double precision,
  moves bigint, last_moved_at timestamptz, name text, brand text, model text)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
  since timestamptz := catalog_internal.moment() - within;
  start bigint := catalog_internal.position_before(since);
BEGIN
  RETURN QUERY
    SELECT m.sku, m.size, m.old_price, m.new_price, m.new_price - m.old_price,
           m.new_price::float8 / nullif(m.old_price, 0) - 1, m.moves, m.last_moved_at, pr.name, pr.brand, pr.model
    FROM (
      SELECT h.sku, h.size, count(*) AS moves, max(h.observed_at) AS last_moved_at,
             (array_agg(h.old_price ORDER BY h.id))[1] AS old_price, (array_agg(h.new_price ORDER BY h.id DESC))[1] AS new_price
      FROM catalog.price_history h
      WHERE h.observed_at > since AND h.id > start
        -- Up to a correction of what the sizes mean, the prices were of other sizes. What they mean being known
        -- for the first time corrects nothing.
        AND NOT EXISTS (
          SELECT FROM catalog.product_history c
          WHERE c.sku = h.sku AND c.field = 'size_map_size_type' AND c.old_value IS NOT NULL AND c.observed_at >= h.observed_at
        )
      GROUP BY h.sku, h.size
    ) m
    LEFT JOIN catalog.products pr ON pr.sku = m.sku
    WHERE m.old_price <> m.new_price
    ORDER BY abs(m.new_price::float8 / nullif(m.old_price, 0) - 1) DESC NULLS FIRST, m.sku, m.size
    LIMIT most;
END
$$;

REVOKE ALL ON FUNCTION catalog.movers(interval, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.movers(interval, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.movers(interval, integer) IS 'What moved within a time (one hour): sizes by the relative change from the price before it to the newest, largest first. Sizes that only appeared or went are not in it, nor moves up to a correction of size_type: sizes meant something else then. Nor does it say whether to act on them: join catalog.current_prices.';
