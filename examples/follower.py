#!/usr/bin/env python3
"""A follower in Python: keeps a copy of the prices in shop.offers, across restarts of either side. Needs psycopg2.

    DATABASE_URL=postgres://... python3 examples/follower.py [--once]

Its role is a member of catalog_reader and owns the schema shop.
"""
import os, select, sys
import psycopg2

WORKING = psycopg2.connect(os.environ["DATABASE_URL"])
WORKING.cursor().execute(
    """create schema if not exists shop;
    create table if not exists shop.offers (sku text, size text, price integer, primary key (sku, size));
    create table if not exists shop.offers_position (position bigint not null, after_sku text)""")
WORKING.commit()


def take_next():
    """Applies the next batch and saves the position, in one transaction; returns whether there was one."""
    with WORKING, WORKING.cursor() as sql:
        sql.execute("lock table shop.offers_position")
        sql.execute("insert into shop.offers_position select catalog.changes_position(), '' where not exists (select from shop.offers_position)")
        sql.execute("select position, after_sku from shop.offers_position")
        position, after_sku = sql.fetchone()
        if after_sku is None:
            sql.execute("select position, kind, sku, size, new_price, field, new_value from catalog.changes(%s, 5000)", (position,))
        else:  # The first copy, in pieces: the position of the first one stays.
            sql.execute("select %s, kind, sku, size, new_price, field, new_value from catalog.changes_snapshot(%s, 500)", (position, after_sku))
        changes = sql.fetchall()
        for _, kind, sku, size, price, field, value in changes:
            if kind == "price" and price is not None:
                sql.execute("insert into shop.offers values (%s, %s, %s) on conflict (sku, size) do update set price = excluded.price", (sku, size, price))
            elif kind == "price":
                sql.execute("delete from shop.offers where (sku, size) = (%s, %s)", (sku, size))
            elif kind == "sku" and field == "state" and value is None:  # It is mirrored no longer.
                sql.execute("delete from shop.offers where sku = %s", (sku,))
        if changes:
            sql.execute("update shop.offers_position set position = %s, after_sku = %s", (changes[-1][0], changes[-1][2] if after_sku is not None else None))
        elif after_sku is not None:
            sql.execute("update shop.offers_position set after_sku = null")
        return bool(changes) or after_sku is not None


LISTENING = psycopg2.connect(os.environ["DATABASE_URL"])
LISTENING.autocommit = True
LISTENING.cursor().execute("listen catalog_changes")
while True:
    while take_next():
        pass
    if "--once" in sys.argv:
        break
    select.select([LISTENING], [], [], 60)  # A NOTIFY only reduces latency.
    LISTENING.poll()
    LISTENING.notifies.clear()
