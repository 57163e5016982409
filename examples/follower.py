#!/usr/bin/env python3
"""A follower in Python: keeps a copy of the prices in shop.offers, across restarts of either side. Needs psycopg2.

What the size keys of a SKU mean is in shop.size_types: one that is corrected gives every key another meaning, so take a
price for a shoe of yours only where it is the size type that you know. A copy does not say which prices are doubted:
before you act on one, ask catalog.current_prices for those that are actionable.

    DATABASE_URL=postgres://... python3 examples/follower.py [--once]

Its role is a member of catalog_reader and owns the schema shop (an administrator: create schema shop authorization ...).
"""
import os, select, sys, psycopg2

db, news = psycopg2.connect(os.environ["DATABASE_URL"]), psycopg2.connect(os.environ["DATABASE_URL"])
news.autocommit = True
with db, db.cursor() as sql:
    # CREATE SCHEMA IF NOT EXISTS needs CREATE on the database even where the schema is there.
    sql.execute("""do $$ begin if to_regnamespace('shop') is null then create schema shop; end if; end $$;
      create table if not exists shop.offers (sku text, size text, price integer, primary key (sku, size));
      create table if not exists shop.position (one boolean primary key default true, position bigint, copied_to text);
      alter table shop.position add column if not exists seen bigint;
      -- A copy that was made before size types were kept is made again.
      do $$ begin if to_regclass('shop.size_types') is null then
        create table shop.size_types (sku text primary key, size_type text not null);
        update shop.position set copied_to = '';
      end if; end $$;
      insert into shop.position values (true, catalog.changes_position(), '') on conflict do nothing""")

def apply_next():  # One batch and its position in one transaction; first a copy in pieces, whose position stays.
    with db, db.cursor() as sql:
        sql.execute("select position, copied_to, seen from shop.position for update")
        position, copied_to, seen = sql.fetchone()
        if seen is not None:  # The copy may tell of changes up to there, which a database that was restored since does not have.
            sql.execute("select from catalog.changes(%s, 1)", (seen,))
        source = "catalog.changes(%s, 5000)" if copied_to is None else "catalog.changes_snapshot(%s, 500)"
        sql.execute(f"select position, sku, size, new_price, field, new_value from {source}", (position if copied_to is None else copied_to,))
        changes = sql.fetchall()
        for _, sku, size, price, field, value in changes:
            if size is not None or (field == "state" and value is None):  # A price moved, or the SKU is mirrored no longer.
                sql.execute("delete from shop.offers where sku = %s and size = coalesce(%s, size)", (sku, size))
            if field == "state" and value is None:
                sql.execute("delete from shop.size_types where sku = %s", (sku,))
            if field == "size_map_size_type":
                sql.execute("""insert into shop.size_types values (%s, %s)
                  on conflict (sku) do update set size_type = excluded.size_type""", (sku, value))
            if price is not None:
                sql.execute("insert into shop.offers values (%s, %s, %s)", (sku, size, price))
        last, copying = changes[-1] if changes else (position, None), copied_to is not None
        if copying:
            copied_to, seen = last[1], last[0] if changes else seen
        else:
            position = last[0]
        sql.execute("update shop.position set position = %s, copied_to = %s, seen = %s", (position, copied_to, seen if seen and seen > position else None))
        return bool(changes) or copying

news.cursor().execute("listen catalog_changes")
while True:
    while apply_next():
        pass
    if "--once" in sys.argv:
        break
    select.select([news], [], [], 60)  # A NOTIFY only reduces latency.
    news.poll()
    news.notifies.clear()
