-- Every transaction locks the SKUs that exist, in order of sku, and then inserts those that are new. Two that insert
-- at once could still wait for each other, where one is about to insert what the other has inserted: so they 
-- alternate. Held to the end of the transaction, and taken before any row of skus.
CREATE OR REPLACE FUNCTION catalog_internal.lock_new_skus() RETURNS void
LANGUAGE sql
BEGIN ATOMIC
  SELECT pg_advisory_xact_lock(hashtext('catalog_internal.skus'));
END;

REVOKE ALL ON FUNCTION catalog_internal.lock_new_skus() FROM PUBLIC;
