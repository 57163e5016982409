-- Wakes followers, with the newest position. Once per transaction, after its last change.
CREATE OR REPLACE FUNCTION catalog_internal.notify_changes() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_notify('catalog_changes', catalog_internal.position_of(last_value)::text) FROM catalog_internal.change_positions
$$;

REVOKE ALL ON FUNCTION catalog_internal.notify_changes() FROM PUBLIC;
