-- Publishes the mirror for a logical replication. Run it once, as the owner of the tables, where wal_level is logical and Postgres is 15 or newer.
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f examples/replication.sql
--
-- Columns are named, so that one which a later version adds does not stop subscribers that lack it. Every table has a primary key, by which
-- updates and deletions find their rows. The history's partitions arrive as rows of price_history, which a subscriber may have in one piece.

create publication catalog_mirror for table
  catalog.skus (sku, state, price_source, in_manifest, priced_at, removed_at),
  catalog.prices (sku, size, price, changed_at),
  catalog.products (sku, name, model, brand, gender_size, size_type, category, size_map_size_type, product, changed_at),
  catalog.price_history (id, sku, size, old_price, new_price, observed_at, size_type_changed),
  catalog.product_history (id, sku, field, old_value, new_value, observed_at)
  with (publish_via_partition_root = true);
