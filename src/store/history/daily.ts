import { scanning, transaction, type Sql, type Tx } from '../connection/db.ts';

/*
 * A day (UTC) of a size is computed from its changes in commit order. A change counts from when it was observed, or
 * from when the previous one was observed if that is later (a clock was set back in between), as in
 * catalog.price_at. So the days of a size never go backwards, and a new change needs only the row of its newest day.
 * The newest price counts until the end of its day: a row depends only on the changes, and is right once the day is
 * over, even if it is never computed again.
 */

/** How many changes one transaction adds to their days. */
const PIECE = 5000;

export interface DailyProgress {
  /** Rows written, one for each day of a size. */
  readonly written: number;
  /** Whether all changes that were committed at the beginning are counted. */
  readonly caughtUp: boolean;
}

/**
 * Brings catalog.daily_prices up to date, with at most `pieces` pieces of changes. Each piece commits together with
 * the position up to which changes are counted, so interrupted work continues there.
 */
export async function keepDailyPrices(sql: Sql, pieces: number, piece = PIECE): Promise<DailyProgress> {
  let written = 0;
  for (let done = 0; done < pieces; done += 1) {
    const next = await transaction(sql, (tx) => countPiece(tx, piece));
    written += next.written;
    if (next.changes < piece) return { written, caughtUp: true };
  }
  return { written, caughtUp: false };
}

async function countPiece(tx: Tx, piece: number): Promise<{ changes: number; written: number }> {
  // Locked first, so that the next statement sees what the previous holder committed.
  const [at] = await tx<{ position: string }[]>`select position from catalog_internal.daily for update`;
  const after = at?.position ?? '0';
  // A slow disk may need long to read the rows of thousands of SKUs.
  const [counted] = await scanning(tx<{ changes: number; written: number }[]>`
    with piece as materialized (
      select id, sku, size, old_price, new_price, size_type_changed, observed_at, (observed_at at time zone 'UTC')::date as day
      from catalog.price_history where id > ${after} order by id limit ${piece}
    ),
    ${days(tx, after)},
    written as (
      insert into catalog.daily_prices as d (sku, size, day, open, low, median, close, changes, size_type_changed,
        first_position, first_change_at)
      select sku, size, day, open, low, median, close, changes, size_type_changed, first_position, first_change_at
      from ends left join middles using (sku, size, day)
      on conflict (sku, size, day) do update set open = excluded.open, low = excluded.low, median = excluded.median,
        close = excluded.close, changes = excluded.changes, size_type_changed = excluded.size_type_changed,
        first_position = excluded.first_position, first_change_at = excluded.first_change_at
      where (d.open, d.low, d.median, d.close, d.changes, d.size_type_changed, d.first_position, d.first_change_at) is distinct from
        (excluded.open, excluded.low, excluded.median, excluded.close, excluded.changes, excluded.size_type_changed,
          excluded.first_position, excluded.first_change_at)
      returning 1
    ),
    moved as (
      update catalog_internal.daily set position = newest.id from (select max(id) as id from piece) newest where newest.id is not null
    )
    select (select count(*)::int from piece) as changes, (select count(*)::int from written) as written`);
  return counted ?? { changes: 0, written: 0 };
}

/**
 * SQL: the days of the sizes in `piece`. `ends` contains their first and last values, `middles` what lies between.
 *
 * - `starts`: the change from which a size's days are computed again: the first of its newest day if the piece may
 *   add to that, otherwise its first in the piece. A day whose changes are partly dropped stays as it is, and what
 *   would add to it counts to the next day.
 * - `moves`: changes with the moment from which they count.
 * - `spans`: how long each price held on a day, in microseconds. After a correction of size_type the key means
 *   another size, so only what comes after it counts to that day.
 */
function days(tx: Tx, after: string) {
  return tx`
    starts as materialized (
      select f.sku, f.size, s.first_priced_at,
        case when l.day >= f.day and l.first_position > dropped.last_value then l.first_position else f.id end as first_id,
        case when l.day < f.day then null when l.first_position > dropped.last_value then l.day else l.day + 1 end as earliest
      from (select distinct on (sku, size) sku, size, id, day from piece order by sku, size, id) f
      cross join catalog_internal.dropped_positions dropped
      left join catalog.skus s on s.sku = f.sku
      left join lateral (
        -- Backwards in the primary key. A plan by the day alone, which Postgres prefers where the table was empty
        -- when it was analyzed, would search all of a day for each size.
        select day, first_position from (
          select sku, size, day, first_position from catalog.daily_prices d
          where (d.sku, d.size, d.day) <= (f.sku, f.size, 'infinity'::date)
          order by d.sku desc, d.size desc, d.day desc limit 1
        ) newest where newest.sku = f.sku and newest.size = f.size
      ) l on true
    ),
    moves as (
      select sku, size, id, old_price, new_price, size_type_changed, first_priced_at,
        max(greatest(observed_at, earliest::timestamp at time zone 'UTC')) over (partition by sku, size order by id) as at
      from (
        select sku, size, p.id, p.old_price, p.new_price, p.size_type_changed, p.observed_at, s.first_priced_at, s.earliest
        from starts s join piece p using (sku, size) where p.id >= s.first_id
        union all
        select s.sku, s.size, h.id, h.old_price, h.new_price, h.size_type_changed, h.observed_at, s.first_priced_at, s.earliest
        from starts s cross join lateral (
          select * from catalog.price_history h where h.sku = s.sku and h.size = s.size and h.id >= s.first_id and h.id <= ${after}
        ) h where s.first_id <= ${after}
      ) all_moves
    ),
    dated as materialized (
      select *, day::timestamp at time zone 'UTC' as begins,
        row_number() over of_day as n, lead(at, 1, (day + 1)::timestamp at time zone 'UTC') over of_day as until,
        count(*) filter (where size_type_changed)
          over (partition by sku, size, day order by id rows between 1 following and unbounded following) = 0 as counts
      from (select *, (at at time zone 'UTC')::date as day from moves) m
      window of_day as (partition by sku, size, day order by id)
    ),
    ends as (
      select sku, size, day, min(id) as first_position,
        min(old_price) filter (where n = 1 and (first_priced_at >= begins and first_priced_at <= at) is not true) as open,
        (array_agg(new_price order by id desc))[1] as close,
        count(*) filter (where counts and not size_type_changed)::int as changes, bool_or(size_type_changed) as size_type_changed,
        min(at) as first_change_at
      from dated group by sku, size, day
    ),
    spans as (
      select sku, size, day, price, sum((extract(epoch from until - since) * 1000000)::bigint) as held
      from (
        select sku, size, day, new_price as price, at as since, until from dated where counts
        union all
        select sku, size, day, old_price, case when first_priced_at between begins and at then first_priced_at else begins end, at
        from dated where n = 1 and counts and not size_type_changed
      ) all_spans
      where price is not null and until > since group by sku, size, day, price
    ),
    middles as (
      select sku, size, day, min(price) as low, min(price) filter (where 2 * upto >= whole) as median
      from (
        select *, sum(held) over (partition by sku, size, day order by price) as upto, sum(held) over (partition by sku, size, day) as whole
        from spans
      ) s group by sku, size, day
    )`;
}
