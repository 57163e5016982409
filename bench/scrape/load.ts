import type { Sql } from '../../src/store/connection/db.ts';

/**
 * A mirror of `skus` SKUs as it is in the middle of its work, written set by set: one in twenty live, prices up to a
 * day old (live ones up to an hour), one in fifty due, one in a hundred of the live ones deferred, few not found,
 * removed or not priced yet, a rate learned of every live one. Metadata without content, no prices: a scrape reads
 * neither.
 */
export async function loadMirror(sql: Sql, skus: number): Promise<void> {
  await sql`
    insert into catalog.skus (sku, state, price_source, hash, sizes, in_manifest, priced_at, asked_at, first_priced_at)
    select 'SKU-' || lpad(n::text, 9, '0'),
      case when n % 1000 = 1 then 'not_found' when n % 1000 = 2 then 'removed' when n % 1000 = 3 then 'pending' else 'priced' end,
      case when n % 20 = 0 then 'live' else 'snapshot' end, case when n % 20 = 0 then null else md5(n::text) end, 12,
      n % 1000 <> 2, at, at, at
    from generate_series(1, ${skus}) as n,
      lateral (select case when n % 1000 <> 3 then now() - make_interval(secs => (n::bigint * 7919) % case when n % 20 = 0 then 3600 else 86400 end) end as at) a`;
  await sql`
    insert into catalog.products (sku, product, refreshed_at, changed_at)
    select sku, '{}', priced_at, priced_at from catalog.skus where state = 'priced'`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, deferrals, held_until)
    select sku, catalog_internal.lane_of(reason), reason, live, at, 1, deferrals, case when deferrals > 0 then now() + interval '5 minutes' end
    from (
      select sku, n, price_source = 'live' as live, (price_source = 'live' and n % 100 = 0)::int as deferrals,
        case when state = 'pending' then 'new' when state in ('not_found', 'removed') then 'metadata'
          when n % 200 = 7 then 'changed' when price_source = 'live' then 'live' else 'sweep' end as reason,
        case when n % 50 = 7 or n % 100 = 0 then now() - make_interval(secs => n % 600)
          else now() + make_interval(secs => 60 + n % 80000) end as at
      from (select *, substr(sku, 5)::int as n from catalog.skus) s
    ) d`;
  await sql`
    insert into catalog_internal.live_rates (sku, alpha, beta)
    select sku, 1 + n % 5, 600 + n % 3000
    from (select sku, substr(sku, 5)::int as n from catalog.skus where price_source = 'live' and state = 'priced') live`;
  await sql`update catalog_internal.sync set snapshot_id = 's', snapshot_generated_at = now(), manifest_applied_at = now()`;
  await sql.unsafe(
    'vacuum analyze catalog.skus, catalog.products, catalog_internal.due, catalog_internal.live_rates',
  );
}

/**
 * One in ten of the priced SKUs has moved as no market does: it is doubted, waits, and has a price, without which
 * nobody is told of it.
 */
export async function doubtSome(sql: Sql): Promise<void> {
  await sql`
    insert into catalog.prices (sku, size, price, changed_at)
    select sku, '42', 41000, now() from catalog.skus where state = 'priced' and substr(sku, 5)::int % 10 = 9`;
  await sql`
    update catalog_internal.due d set lane = catalog_internal.lane_of('doubted'), reason = 'doubted', due_at = now(),
      held_until = now() + interval '1 hour', doubt = 'implausible', oddity = 'jump', believed = '{"42": 4100}',
      doubted_at = now() - make_interval(secs => substr(d.sku, 5)::int % 300)
    from catalog.prices p where p.sku = d.sku`;
  await sql`
    update catalog_internal.mass_move set since = now(), kind = 'implausible', answers = 5000, implausible = 500`;
  await sql.unsafe('vacuum analyze catalog.prices, catalog_internal.due');
}
