-- Up to which id changes are no longer all kept: what retention has dropped, which a sequence says, and any chunk that
-- somebody has dropped or detached by hand, as far as its ids were drawn. Considers only chunks that end after
-- `since`. It goes by the catalog as it is rather than as the snapshot sees it, so it has to be called after reading
-- the history.
CREATE OR REPLACE FUNCTION catalog_internal.dropped_to(since bigint DEFAULT 0) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT greatest(dropped.last_value, (
    SELECT max(least(c.number * 5000000 + 4999999, drawn.last_value)) FROM catalog_internal.history_chunks c
    WHERE c.number * 5000000 + 4999999 > greatest(since, dropped.last_value) AND c.number * 5000000 <= drawn.last_value
      AND pg_partition_root(to_regclass('catalog_internal.price_history_' || c.number)) IS DISTINCT FROM 'catalog.price_history'::regclass
  )) FROM catalog_internal.dropped_positions dropped, catalog_internal.change_positions drawn
$$;

REVOKE ALL ON FUNCTION catalog_internal.dropped_to(bigint) FROM PUBLIC;
