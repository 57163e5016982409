-- Counts one request of the account's other services, irrevocably (others_sent). Under the pacer's lock.
CREATE OR REPLACE FUNCTION catalog_internal.count_other(moment timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part bigint := catalog_internal.others_part();
  number bigint := floor(extract(epoch FROM moment) * 1000 / part);
  counter regclass := format('catalog_internal.others_sent_%s', number % 16)::regclass;
  counted bigint := pg_sequence_last_value(counter);
BEGIN
  PERFORM setval(counter, CASE WHEN counted >> 20 = number * part THEN counted + 1 ELSE number * part << 20 | 1 END);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.count_other(timestamptz) FROM PUBLIC;
