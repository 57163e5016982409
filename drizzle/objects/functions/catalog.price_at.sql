-- The price of a size at a moment is the price before its first change, in commit order, that was observed later, or
-- the present one if there is no such change. So a change counts from when it was observed, or from when the change
-- before it was, if a clock was set back between them. The search starts at the milestone, because the very first
-- change may have that position. One plan for all calls: planning for all chunks of the history takes longer than
-- reading.
CREATE OR REPLACE FUNCTION catalog.price_at(sku text, size text, at timestamptz) RETURNS integer
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  first_priced_at timestamptz;
  asked_day date := (price_at.at AT TIME ZONE 'UTC')::date;
  day date;
  first_id bigint;
  last_id bigint;
  only_at timestamptz;
  changed_once boolean;
  next_open integer;
  held integer;
BEGIN
  SELECT s.first_priced_at INTO first_priced_at FROM catalog.skus s WHERE s.sku = price_at.sku;
  IF at < first_priced_at OR first_priced_at IS NULL THEN
    RETURN NULL;
  END IF;
  -- A size's days tell what it cost, or where to look, so that neither hundreds of changes of its siblings are read nor what lies far apart in a long
  -- history: it is at the latest the first change of the next day, or one that is not counted yet. Of the oldest day some may be dropped.
  IF asked_day > (SELECT min(d.day) FROM catalog.daily_prices d) THEN
    SELECT p.day, p.open, p.first_position, p.only_change_at INTO day, held, first_id, only_at FROM catalog.daily_prices p
    WHERE p.sku = price_at.sku AND p.size = price_at.size AND p.day >= asked_day ORDER BY p.day LIMIT 1;
    IF day > asked_day THEN
      RETURN CASE WHEN at >= catalog_internal.history_known_from() THEN held END;
    END IF;
    IF day = asked_day THEN
      SELECT p.open, p.first_position INTO next_open, last_id FROM catalog.daily_prices p
      WHERE p.sku = price_at.sku AND p.size = price_at.size AND p.day > asked_day ORDER BY p.day LIMIT 1;
      -- Where it changed once on the day, its days say what it cost before and after. Not where changes of the day were dropped, as later ones count to the
      -- day after then; nor where the day began without a price, as it was there from first_priced_at on where that is on this day.
      IF (only_at > at AND held IS NOT NULL OR only_at <= at AND last_id IS NOT NULL) AND first_id > (SELECT d.last_value FROM catalog_internal.dropped_positions d) THEN
        RETURN CASE WHEN at < catalog_internal.history_known_from() THEN NULL WHEN only_at > at THEN held ELSE next_open END;
      END IF;
      -- Of a day that was counted before there was first_change_at the history says when it changed: one row of it, where it changed once.
      IF only_at IS NULL AND last_id IS NOT NULL THEN
        SELECT p.first_change_at IS NULL AND p.changes = 1 AND NOT p.size_type_changed INTO changed_once FROM catalog.daily_prices p
        WHERE p.sku = price_at.sku AND p.size = price_at.size AND p.day = asked_day;
      END IF;
    ELSIF EXISTS (SELECT FROM catalog.daily_prices p WHERE p.sku = price_at.sku) THEN
      -- Nothing that is counted has changed since. Where the SKU has no day at all, somebody may have deleted them.
      SELECT c.position + 1 INTO first_id FROM catalog_internal.daily c;
    END IF;
  END IF;
  IF last_id IS NULL THEN
    first_id := greatest(first_id, catalog_internal.position_before(at));
  END IF;
  IF changed_once THEN
    SELECT CASE WHEN h.observed_at > price_at.at THEN h.old_price ELSE next_open END INTO held FROM catalog.price_history h
    WHERE h.sku = price_at.sku AND h.size = price_at.size AND h.id = first_id;
  ELSE
    SELECT h.old_price INTO held FROM catalog.price_history h
    WHERE h.sku = price_at.sku AND h.size = price_at.size AND h.id >= first_id AND h.id <= coalesce(last_id, 9223372036854775807)
      AND h.observed_at > price_at.at ORDER BY h.id LIMIT 1;
  END IF;
  -- A day whose first changes were dropped was not added to: they count to the next one.
  IF NOT FOUND AND last_id IS NOT NULL THEN
    SELECT h.old_price INTO held FROM catalog.price_history h
    WHERE h.sku = price_at.sku AND h.size = price_at.size AND h.id >= last_id AND h.observed_at > price_at.at ORDER BY h.id LIMIT 1;
  END IF;
  IF NOT FOUND THEN
    SELECT p.price INTO held FROM catalog.prices p WHERE p.sku = price_at.sku AND p.size = price_at.size;
  END IF;
  IF at < catalog_internal.history_known_from() THEN
    RETURN NULL;
  END IF;
  RETURN held;
END
$$;

REVOKE ALL ON FUNCTION catalog.price_at(text, text, timestamptz) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.price_at(text, text, timestamptz) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.price_at(text, text, timestamptz) IS 'The price that the mirror held for a size at a moment. Null: none, or not known: before first_priced_at, or before the oldest moment of which all changes are kept (HISTORY_RETENTION). The size key means what it meant then.';
