-- Called before redate_history changes observation times, in the same transaction: days that begin with one of those
-- changes, or with a later one, are computed again from the history. What was written after the clock was set back may
-- have been counted to a day in the future.
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
