-- Requests of the account's other services in the window of this length, and when the first of them leaves it. They
-- are counted in sequences, because changes to a sequence are visible to everybody at once, whatever becomes of the
-- caller's transaction: sixteen that are used in turn, each for a fifteenth of window and guard, as its start in epoch
-- milliseconds * 2^20 + the count. So a request counts until the end of its fifteenth leaves the window. STABLE,
-- although two calls may differ: a volatile function cannot run where a statement that writes its result is read in
-- parallel, and catalog.sync_status and catalog.sku_trust call it.
CREATE OR REPLACE FUNCTION catalog_internal.others_sent(span interval, OUT sent integer, OUT leaves_at timestamptz)
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
  WITH part AS (
    SELECT seq.value >> 20 AS began, (seq.value & 1048575)::integer AS requests
    FROM generate_series(0, 15) AS i,
      LATERAL (SELECT pg_sequence_last_value(format('catalog_internal.others_sent_%s', i)::regclass)) AS seq(value)
  ), present AS (
    SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now, extract(epoch FROM span) * 1000 AS ms,
      catalog_internal.others_part() AS part
  )
  SELECT coalesce(sum(requests), 0)::integer, to_timestamp((min(began) + min(present.part) + min(ms)) / 1000)
  FROM part, present WHERE began + present.part > now - ms AND began <= now + ms;
END;

REVOKE ALL ON FUNCTION catalog_internal.others_sent(interval) FROM PUBLIC;
