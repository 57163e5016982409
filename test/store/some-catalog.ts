import type { Sql } from '../../src/store/connection/db.ts';

/**
 * Makes a catalog with every kind of SKU, drawn by `seed`. Ages go up to forty days, ten seconds off any bound, so
 * that the moment of counting does not matter. A third is due, some of it only for metadata, deferred, failing,
 * claimed or waiting.
 */
export async function someCatalog(sql: Sql, skus: number, seed: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`select setseed(${seed})`;
    await tx`
      insert into catalog.skus (sku, state, price_source, in_manifest, priced_at, asked_at)
      select 'S' || g, state, (array['snapshot', 'live', null])[ceil(random() * 3)], random() < 0.7,
        case when state <> 'pending' then at end, case when state <> 'pending' then at end
      from generate_series(1, ${skus}) g,
        lateral (select g as of, (array['pending', 'priced', 'priced', 'priced', 'not_found', 'removed'])[ceil(random() * 6)] as state,
          now() - make_interval(secs => 20 * floor(power(10, random() * 6.5) / 20) + 10) as at) one`;
    await tx`
      insert into catalog.products (sku, product, refreshed_at, changed_at)
      select sku, '{}', coalesce(priced_at, now()), now() from catalog.skus where state <> 'pending'`;
    await tx`
      insert into catalog.prices (sku, size, price, changed_at) select sku, '42', 100, now() from catalog.skus where state = 'priced'`;
    await tx`
      insert into catalog_internal.due (sku, lane, reason, live, due_at, deferrals, failures, held_until, claim, missed_moves)
      select sku, 1, (array['changed', 'live', 'sweep', 'unlisted', 'missed', 'metadata', 'new'])[ceil(random() * 7)], random() < 0.3,
        now() + make_interval(secs => 20 * floor(random() * 150 - 50) + 10), (random() < 0.2)::int, (random() < 0.1)::int,
        case when random() < 0.3 then now() + make_interval(secs => 20 * floor(random() * 50 - 25) + 10) end, case when random() < 0.1 then 7 end,
        case when random() < 0.1 then 1 end
      from catalog.skus`;
  });
}
