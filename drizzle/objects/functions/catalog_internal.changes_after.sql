-- How many changes catalog.changes has after a position, counted up to `most`. It uses only the indexes of its three
-- tables, because every scrape asks for each follower. A batch counts as many as it has positions. Planned for the
-- position each time, like catalog.changes: one plan for all positions opens every chunk of the history.
CREATE OR REPLACE FUNCTION catalog_internal.changes_after(after bigint, most integer) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  start CONSTANT bigint := catalog_internal.id_before(after);
BEGIN
  RETURN least(most,
    (SELECT count(*) FROM (SELECT FROM catalog.price_history h WHERE h.id > start ORDER BY h.id LIMIT most) prices)
    + (SELECT count(*) FROM (SELECT FROM catalog.product_history h WHERE h.id > start ORDER BY h.id LIMIT most) products)
    + (SELECT coalesce(sum(b.last_id - greatest(b.id - 1, start)), 0) FROM (
         SELECT c.id, c.last_id FROM catalog_internal.change_batches c WHERE c.last_id > start ORDER BY c.last_id LIMIT most
       ) b));
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.changes_after(bigint, integer) FROM PUBLIC;
