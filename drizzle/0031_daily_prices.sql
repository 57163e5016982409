CREATE TABLE "catalog_internal"."daily" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"position" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "daily_one_row" CHECK ("catalog_internal"."daily"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog"."daily_prices" (
	"sku" text COLLATE "C" NOT NULL,
	"size" text COLLATE "C" NOT NULL,
	"day" date NOT NULL,
	"open" integer,
	"low" integer,
	"median" integer,
	"close" integer,
	"changes" integer NOT NULL,
	"size_type_changed" boolean NOT NULL,
	"first_position" bigint NOT NULL,
	CONSTRAINT "daily_prices_sku_size_day_pk" PRIMARY KEY("sku","size","day")
);
--> statement-breakpoint
CREATE INDEX "daily_prices_day" ON "catalog"."daily_prices" USING btree ("day");--> statement-breakpoint
INSERT INTO catalog_internal.daily DEFAULT VALUES;
--> statement-breakpoint
-- Rows of the present day are written again with each change; neither index moves with them.
ALTER TABLE catalog.daily_prices SET (fillfactor = 90);
ALTER TABLE catalog_internal.daily SET (fillfactor = 10);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.daily IS 'One row: changes of price_history up to this position are in catalog.daily_prices.';
COMMENT ON TABLE catalog.daily_prices IS 'One row for each size and day (UTC) on which its price changed, some minutes after the change; kept for DAILY_RETENTION. On any other day the price was the close of the latest earlier row; the open of the first later one where there is none; the present price where there is no row at all.';
COMMENT ON COLUMN catalog.daily_prices.sku IS 'SKU in catalog.skus.';
COMMENT ON COLUMN catalog.daily_prices.size IS 'Size key as the partner names it.';
COMMENT ON COLUMN catalog.daily_prices.day IS 'From midnight to midnight, UTC.';
COMMENT ON COLUMN catalog.daily_prices.open IS 'Whole baht before the first change of the day; null: there was no price, or the SKU was first priced on that day.';
COMMENT ON COLUMN catalog.daily_prices.low IS 'The lowest price that was held on the day; null: none. The newest price counts until the end of the day, also of the present one.';
COMMENT ON COLUMN catalog.daily_prices.median IS 'Weighted by time: the lowest price that was not exceeded for at least half of the time in which there was one; null: none.';
COMMENT ON COLUMN catalog.daily_prices.close IS 'The price after the last change of the day; null: none.';
COMMENT ON COLUMN catalog.daily_prices.changes IS 'Market moves of the day, also those by which the size appeared or went; corrections of size_type are none.';
COMMENT ON COLUMN catalog.daily_prices.size_type_changed IS 'On this day size_map.size_type was corrected, and the size means something else since: low, median, close and changes are those after the correction.';
COMMENT ON COLUMN catalog.daily_prices.first_position IS 'Position (price_history.id) of the first change of the day.';
--> statement-breakpoint
-- All changes since this moment are kept. Of dropped ones is known that they were observed before the first milestone behind them; the hour is that of
-- position_before. A later milestone before that counts, too: the clock may have been set back meanwhile. To be asked after the history was read:
-- how far it is dropped is said by a sequence, which is the same in every snapshot, and what was read is not dropped before the transaction ends.
CREATE OR REPLACE FUNCTION catalog_internal.history_known_from() RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  dropped bigint;
  known timestamptz;
BEGIN
  SELECT last_value INTO dropped FROM catalog_internal.dropped_positions;
  IF dropped = 0 THEN
    RETURN '-infinity';
  END IF;
  SELECT max(at) + interval '1 hour' INTO known FROM catalog_internal.history_milestones
  WHERE position <= (SELECT min(position) FROM catalog_internal.history_milestones WHERE position >= dropped);
  -- None: the snapshot is from before it was made.
  RETURN coalesce(known, 'infinity');
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_known_from() FROM PUBLIC;
--> statement-breakpoint
-- What a size cost at a moment is the price before its first change, in the order of the commits, that was observed later; where there is none,
-- the present one. So a change counts from when it was observed, or from when the one before it was, where a clock was set back between them.
-- From the milestone on, as the first change of all may have its position. One plan for all calls: to plan for all chunks of the history takes longer than to read.
CREATE OR REPLACE FUNCTION catalog.price_at(sku text, size text, at timestamptz) RETURNS integer
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  first_priced_at timestamptz;
  before bigint;
  held integer;
BEGIN
  SELECT s.first_priced_at INTO first_priced_at FROM catalog.skus s WHERE s.sku = price_at.sku;
  IF at < first_priced_at OR first_priced_at IS NULL THEN
    RETURN NULL;
  END IF;
  before := catalog_internal.position_before(at);
  SELECT h.old_price INTO held FROM catalog.price_history h
  WHERE h.sku = price_at.sku AND h.size = price_at.size AND h.id >= before AND h.observed_at > price_at.at ORDER BY h.id LIMIT 1;
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
--> statement-breakpoint
-- catalog.price_at of each size that a SKU had, with what its size keys meant then. What is known is asked within the statement that reads the history:
-- then the history is locked, and nothing can be dropped.
CREATE OR REPLACE FUNCTION catalog.prices_at(sku text, at timestamptz)
RETURNS TABLE (size text, price integer, size_type text)
LANGUAGE plpgsql STABLE STRICT ROWS 15 SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  first_priced_at timestamptz;
  before bigint;
  meaning text;
BEGIN
  SELECT s.first_priced_at INTO first_priced_at FROM catalog.skus s WHERE s.sku = prices_at.sku;
  IF prices_at.at < first_priced_at OR first_priced_at IS NULL THEN
    RETURN;
  END IF;
  before := catalog_internal.position_before(prices_at.at);
  -- Known for the first time it corrected nothing.
  SELECT coalesce(h.old_value, h.new_value) INTO meaning FROM catalog.product_history h
  WHERE h.sku = prices_at.sku AND h.field = 'size_map_size_type' AND h.id >= before AND h.observed_at > prices_at.at ORDER BY h.id LIMIT 1;
  IF NOT FOUND THEN
    SELECT p.size_map_size_type INTO meaning FROM catalog.products p WHERE p.sku = prices_at.sku;
  END IF;
  RETURN QUERY
    WITH changed AS (
      SELECT DISTINCT ON (h.size) h.size, h.old_price FROM catalog.price_history h
      WHERE h.sku = prices_at.sku AND h.id >= before AND h.observed_at > prices_at.at ORDER BY h.size, h.id
    ), held AS (
      SELECT c.size, c.old_price AS price FROM changed c
      UNION ALL
      SELECT p.size, p.price FROM catalog.prices p WHERE p.sku = prices_at.sku AND NOT EXISTS (SELECT FROM changed c WHERE c.size = p.size)
    )
    SELECT h.size, h.price, meaning FROM held h
    WHERE h.price IS NOT NULL AND prices_at.at >= catalog_internal.history_known_from() ORDER BY h.size;
END
$$;

REVOKE ALL ON FUNCTION catalog.prices_at(text, timestamptz) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.prices_at(text, timestamptz) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.prices_at(text, timestamptz) IS 'The prices that the mirror held for the sizes of a SKU at a moment, as catalog.price_at, and what its size keys meant then (size_map.size_type). No rows: none, or not known.';
--> statement-breakpoint
-- Before redate_history changes when changes were observed, in the same transaction: days that begin with one of them, or with a later change, are
-- made again from the history. What was written after the clock was set back may have been counted to a day to come.
CREATE OR REPLACE FUNCTION catalog_internal.forget_days_ahead() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
  first bigint;
  earliest date;
BEGIN
  PERFORM FROM catalog_internal.daily FOR UPDATE;
  SELECT min(id) INTO first FROM catalog.price_history WHERE observed_at > moment;
  IF first IS NULL THEN
    RETURN;
  END IF;
  SELECT (min(observed_at) AT TIME ZONE 'UTC')::date INTO earliest FROM catalog.price_history WHERE id >= first;
  DELETE FROM catalog.daily_prices WHERE day >= earliest AND first_position >= first;
  UPDATE catalog_internal.daily SET position = least(position, first - 1);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.forget_days_ahead() FROM PUBLIC;
