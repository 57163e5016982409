import { isBehindDeltas } from './baseline-sql.ts';

/* How a baseline treats SKUs whose lines were rejected, in the order the statements run (baseline-sql.ts). */

/** SQL: whether no delta has reported something newer of the SKU `s`; $1 as in DIFF, $2 the token then. */
const isUnreported = `(s.reported_at is null or s.reported_at < $1::timestamptz or not ${isBehindDeltas('$2')})`;

/**
 * Adds SKUs that the mirror knows only from a rejected line. Such a SKU may be live, and then no delta reports its
 * moves: until a line of it is read, it is asked and judged like a SKU that nobody lists.
 */
export const INSERT_REJECTED = `
  with unread as (
    insert into catalog.skus (sku, in_manifest)
    select distinct sku, false from rejected_skus r where not exists (select from catalog.skus s where s.sku = r.sku) order by sku
    returning sku
  )
  insert into diff (sku, kind) select sku, 'unread' from unread`;

/**
 * What a rejected line would have said is unknown, so the price routes are asked. $1 as in DIFF, $2 the token then.
 */
export const MARK_REJECTED = `
  select coalesce(sum(catalog_internal.mark_due(skus, mark)), 0)::int as marked
  from (
    select array_agg(sku order by sku) as skus, mark
    from (
      select distinct sku, case when s.state = 'pending' then 'new' else 'changed' end as mark
      from rejected_skus join catalog.skus s using (sku)
      where ${isUnreported}
        and sku not in (select sku from diff where mark is not null)
    ) rejected
    group by mark order by mark
  ) marks`;

/** SQL: SKUs that the mirror lists and none of whose lines could be read. */
const UNREAD = 'select sku from rejected_skus intersect select sku from differing where is_absent';

/**
 * Such a SKU stays as it was. But its line may have said in some form that it is live now, and then no delta reports
 * its moves. So it is asked and judged like a SKU with a move that the delta has left out, until a line of it is read
 * or a delta reports a move.
 */
export const DISTRUST_UNREAD = `
  with distrusted as (
    update catalog_internal.due l set missed_moves = 1
    from catalog.skus s
    where s.sku = l.sku and l.missed_moves is null and s.price_source is distinct from 'live' and ${isUnreported}
      and s.sku in (${UNREAD})
    returning l.sku
  )
  insert into catalog_internal.unread_lines select sku from distrusted order by sku on conflict do nothing`;

export const TRUST_READ = `
  with gone as (
    delete from catalog_internal.unread_lines where sku not in (${UNREAD}) returning sku
  )
  update catalog_internal.due l set missed_moves = null from gone where l.sku = gone.sku and l.missed_moves = 1`;
