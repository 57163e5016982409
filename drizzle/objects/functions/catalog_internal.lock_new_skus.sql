-- Every transaction locks the SKUs that exist, in order of sku, and then inserts new ones. Two that insert at once
-- could still wait for each other, if each is about to insert what the other has inserted, so they take turns. Held to
-- the end of the transaction, and taken before any row of skus.
CREATE OR REPLACE FUNCTION catalog_internal.lock_new_skus() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.lock_new_skus IN EXCLUSIVE MODE;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.lock_new_skus() FROM PUBLIC;
