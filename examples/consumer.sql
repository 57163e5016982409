-- A follower in plain SQL: keeps a copy of the prices and a list of the price drops, in tables of its own. Neither says which
-- prices are doubted: before you act on one, ask catalog.current_prices for those that are actionable.
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f examples/consumer.sql     (repeatedly: from cron, a timer, or after a NOTIFY)
--
-- One run takes 10,000 changes. It prints how many are left: where that is not 0, run it again at once. The initial load makes
-- some 25 changes for each SKU, so begin after it.
--
-- Its role is a member of catalog_reader and owns the schema shop (an administrator: create schema shop authorization …).
-- The changes and the position are committed together, so a run that fails half-way has no effect, and no change is applied
-- twice or skipped.

-- CREATE SCHEMA IF NOT EXISTS needs CREATE on the database even where the schema is there.
do $$ begin
  if to_regnamespace('shop') is null then create schema shop; end if;
end $$;
create table if not exists shop.follower (position bigint not null);
create table if not exists shop.offers (sku text collate "C", size text collate "C", price integer, size_type text, primary key (sku, size));
create table if not exists shop.drops (sku text, size text, old_price integer, new_price integer, observed_at timestamptz);

begin;

-- Concurrent runs wait for each other here.
lock table shop.follower;

-- The first run copies all prices. It is one statement with one snapshot: later commits arrive as changes.
with first_run as (
  insert into shop.follower select catalog.changes_position() where not exists (select from shop.follower) returning position
)
insert into shop.offers select sku, size, price, size_type from catalog.current_prices where exists (select from first_run);

-- Fails with SQLSTATE CM001 if HISTORY_RETENTION has dropped changes after the position, or if the database was restored:
-- then empty shop.follower and shop.offers, and the next run starts from scratch.
create temporary table news on commit drop as
  select c.* from shop.follower, catalog.changes(follower.position, 10000) c;

-- Market moves. If meaning_changed, the size keys have a new meaning: the two prices belong to
-- different shoes, so their difference means nothing.
insert into shop.drops
  select sku, size, old_price, new_price, observed_at from news
  where kind = 'price' and not meaning_changed and new_price < old_price
  order by position;

-- The copy: the current prices and size type of each SKU that changed, or is new.
delete from shop.offers where sku in (select sku from news);
insert into shop.offers
  select sku, size, price, size_type from catalog.current_prices where sku = any (array(select sku from news));

update shop.follower set position = newest from (select max(position) as newest from news) n where newest is not null;

commit;

select count(*) as left_to_read from shop.follower, catalog.changes(follower.position, 10000);
