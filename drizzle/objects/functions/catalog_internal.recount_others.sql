-- Counts what the account's other services sent while the clock was ahead, in the window before it was set back, as
-- sent now.
CREATE OR REPLACE FUNCTION catalog_internal.recount_others(moment timestamptz, shift interval) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part bigint := catalog_internal.others_part();
  present bigint := floor(extract(epoch FROM moment) * 1000);
  number bigint := present / part;
  last bigint := present + floor(extract(epoch FROM shift) * 1000);
  counter regclass;
  counted bigint;
  sent bigint := 0;
BEGIN
  FOR i IN 0..15 LOOP
    counter := format('catalog_internal.others_sent_%s', i)::regclass;
    counted := pg_sequence_last_value(counter);
    CONTINUE WHEN counted IS NULL OR counted >> 20 <= present;
    IF counted >> 20 > last - 16 * part THEN
      sent := sent + (counted & 1048575);
    END IF;
    -- As if it had counted long ago.
    PERFORM setval(counter, 1);
  END LOOP;
  IF sent > 0 THEN
    counter := format('catalog_internal.others_sent_%s', number % 16)::regclass;
    counted := pg_sequence_last_value(counter);
    PERFORM setval(counter, CASE WHEN counted >> 20 = number * part THEN counted + sent ELSE number * part << 20 | sent END);
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.recount_others(timestamptz, interval) FROM PUBLIC;
