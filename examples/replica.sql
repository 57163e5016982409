-- The tables of a subscriber of examples/replication.sql. Then, with a connection to the mirror's database as a role with REPLICATION and SELECT:
--
--   create subscription catalog_mirror connection 'host=… dbname=… user=…' publication catalog_mirror;

create schema catalog;
create table catalog.skus (sku text primary key, state text, price_source text, in_manifest boolean, priced_at timestamptz, removed_at timestamptz);
create table catalog.prices (sku text, size text, price integer, changed_at timestamptz, primary key (sku, size));
create table catalog.products (sku text primary key, name text, model text, brand text, gender_size text, size_type text, category text,
  size_map_size_type text, product jsonb, changed_at timestamptz);
create table catalog.price_history (id bigint primary key, sku text, size text, old_price integer, new_price integer,
  observed_at timestamptz, size_type_changed boolean);
create table catalog.product_history (id bigint primary key, sku text, field text, old_value text, new_value text, observed_at timestamptz);
