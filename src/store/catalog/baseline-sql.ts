import { SNAPSHOT_REASON } from '../ledger/due.ts';
import { LONGEST_CACHED_SECONDS } from './audit.ts';
import { tellsOf } from './tokens.ts';

/*
 * The statements that merge a baseline, in the order they run. `diff` is made from `differing` (compare-sql.ts) once
 * its SKUs are locked. Everything after that works from `diff`, so that a manifest in which nothing moved writes
 * nothing, and locks are held only as long as the changes take.
 */

/**
 * SQL: whether deltas have moved the token since the manifest was asked for and continue from there, so that their
 * reports are newer.
 */
export const isBehindDeltas = (tokenAtRequest: string) =>
  `(select snapshot_id is distinct from ${tokenAtRequest} and chain_broken_at is null from catalog_internal.sync)`;

/**
 * Whether a delta reported a SKU as snapshot-priced after $1 (when the manifest was asked for) that is not in
 * `differing`; checked only if the manifest's token replaces the deltas' ($2: the mirror's token at $1). A report
 * clears the hash, so such a report came after the comparison. A SKU reported as live is asked in any case, whatever
 * its line says.
 */
export const REPORTED_UNSEEN = `
  select from catalog.skus
  where not ${isBehindDeltas('$2')}
    and reported_at >= $1::timestamptz
    and in_manifest
    and hash is null
    and price_source is distinct from 'live'
    and sku not in (select sku from differing)
  limit 1`;

/** SQL: how much older an answer may be than its request. */
const LONGEST_CACHED = `interval '${LONGEST_CACHED_SECONDS} seconds'`;

/** SQL, in DIFF: whether a delta has reported the SKU as live since $1. */
const REPORTED_AS_LIVE = `(m.price_source = 'live' and m.reported_at >= $1::timestamptz)`;

/**
 * $1 when the manifest was asked for, or when deltas left its snapshot (tokens.ts), $2 the newest claim when its
 * snapshot was first seen, $3 the token at $1, $4 when the snapshot was built, $5 when it was first seen. Locks the
 * SKUs that differ, in order of sku.
 *
 * SKUs that a delta reported after $1 are left out, because the delta is newer. But if the manifest's token replaces
 * the delta's, or is the present one, later deltas start from the manifest: then its lines count, and the SKUs are
 * asked. What was reported as live stays live until they say otherwise: nobody would report its moves.
 * - `kind`: what differs.
 * - `mark`: the reason to price the SKU; null if that is provably needless (partner rule 4.2.5: the hash covers price
 *   state). It is needless if neither hash nor cohort moved, or if the price was claimed after $2 and the SKU is not
 *   back from being removed. Unless it is known that no cache of the partner answers, the price must also have been
 *   asked for after $5 plus the longest time that a cache may keep it. `sweep`: it left live with the hash it had
 *   before and without a move, so the schedule is enough.
 * - `skipped`: only the claim after $2 makes it needless.
 * - `is_newer`, `may_be_resized`: the line of a live SKU says something that its last refresh cannot have shown
 *   (manifest-hints.ts).
 */
export const DIFF = `
  create temporary table diff on commit drop as
  with locked as materialized (
    select ctid as row_id, sku, state, price_source, hash, sizes, in_manifest, updated_at, hash_before_live, reported_at, asked_at
    from catalog.skus where sku in (select sku from differing union all select sku from rejected_skus) order by sku for no key update
  ),
  compared as (
    select sku, m.row_id, s.is_absent, m.sku is null as is_new,
      s.sizes, r.hash, r.price_source, s.updated_at,
      m.state, m.hash_before_live,
      m.price_source as was_source, r.price_source is distinct from m.price_source as crossed,
      r.hash is distinct from m.hash as hash_moved,
      not m.in_manifest as was_unlisted,
      s.sizes is distinct from m.sizes or s.updated_at is distinct from m.updated_at as rest_moved,
      -- Stands still while the SKU is locked: its answers lock that first.
      coalesce(
        l.asked_claim > $2::bigint
          and ((select again_share from catalog_internal.beliefs) < 1 or m.asked_at >= $5::timestamptz + ${LONGEST_CACHED}),
        false) as asked_since,
      sku in (select sku from duplicates) or coalesce(m.reported_at >= $1::timestamptz, false) as is_doubtful,
      m.state = 'priced' and m.in_manifest and m.price_source = 'live' and r.price_source = 'live' as stays_live,
      s.updated_at > m.updated_at as is_later, s.sizes is distinct from m.sizes as has_other_sizes, m.asked_at
    from differing s
    left join locked m using (sku)
    left join catalog_internal.due l using (sku)
    cross join lateral (
      select case when ${REPORTED_AS_LIVE} then 'live' else s.price_source end as price_source,
        case when ${REPORTED_AS_LIVE} then null else s.hash end as hash
    ) r
    where m.reported_at is null or m.reported_at < $1::timestamptz or not ${isBehindDeltas('$3')}
  )
  select sku, row_id, sizes, hash, price_source, updated_at, was_source, was_unlisted, crossed and not is_new and not is_absent as crossed,
    case when is_absent then 'absent'
      when is_new then 'new'
      when crossed or hash_moved or was_unlisted or rest_moved then 'changed' end as kind,
    case
      when is_absent then 'absent'
      when is_new then 'new'
      when is_doubtful then 'changed'
      when state = 'pending' then case when was_unlisted or crossed then 'new' end
      when crossed and hash = hash_before_live then 'sweep'
      when crossed then 'changed'
      when (hash_moved and price_source = 'snapshot' or was_unlisted) and (not asked_since or state = 'removed') then 'changed'
    end as mark,
    not is_absent and not is_new and not crossed
      and (hash_moved and price_source = 'snapshot' or was_unlisted)
      and asked_since and not is_doubtful and state <> 'removed' as skipped,
    (stays_live and not is_doubtful and is_later and updated_at > asked_at) is true as is_newer,
    (stays_live and not is_doubtful and case when has_other_sizes then coalesce($4::timestamptz, updated_at, 'infinity') > asked_at
      else is_later and updated_at > asked_at end) is true as may_be_resized,
    has_other_sizes
  from compared
  where (is_absent and not was_unlisted and sku not in (select sku from rejected_skus))
    or (not is_absent and (is_new or crossed or hash_moved or was_unlisted or rest_moved or is_doubtful))`;

/**
 * Locks all rows of the ledger that are marked below in several steps: in order of sku, as everyone locks the ledger.
 */
export const LOCK_LEDGER = `
  select from catalog_internal.due l where sku in (
    select sku from diff where kind is distinct from 'new' and (mark is not null or skipped)
    union select sku from rejected_skus union select sku from catalog_internal.unreported_moves where reported_at is null
    union select sku from catalog_internal.unread_lines
  ) order by sku for update of l`;

/**
 * A plain insert, because other writers that insert SKUs wait for the lock (locks.ts). An upsert takes 1.5 times as
 * long.
 */
export const INSERT_NEW = `
  insert into catalog.skus (sku, price_source, hash, sizes, in_manifest, updated_at)
  select sku, price_source, hash, sizes, true, updated_at from diff where kind = 'new' order by sku`;

/** Finds rows by their row ids, which do not change while the rows are locked. */
export const UPDATE_CHANGED = `
  update catalog.skus s set price_source = d.price_source, hash = d.hash, sizes = d.sizes, in_manifest = true,
    updated_at = d.updated_at,
    hash_before_live = case when d.price_source = 'live' then coalesce(s.hash, s.hash_before_live) end
  from diff d where d.kind = 'changed' and s.ctid = d.row_id`;

/** Absence is not deletion: the SKU keeps its state and prices and is asked once (partner rule 4.2.3). */
export const UPDATE_ABSENT = `
  update catalog.skus s set in_manifest = false, hash = null
  from diff d where d.kind = 'absent' and s.ctid = d.row_id`;

/** Deletes ledger rows without a SKU, which only a manual change can have left. */
export const DROP_ORPHANS = `
  delete from catalog_internal.due l using diff d where d.kind = 'new' and l.sku = d.sku`;

/** Does what mark_due would do for SKUs that the ledger does not contain, in two thirds of the time. */
export const MARK_NEW = `
  insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, rank)
  select d.sku, catalog_internal.lane_of('new'), 'new', d.price_source = 'live', now(), 1, coalesce(w.weight, 1)
  from diff d left join catalog_internal.watched w using (sku)
  where d.kind = 'new' order by d.sku`;

/**
 * Everyone who sorts SKUs by scope holds this lock until the commit (catalog_internal.apply_scope). READ_SCOPED tells
 * whether there are rules to sort by.
 */
export const LOCK_SCOPE = 'lock table catalog_internal.lock_scope in row exclusive mode';
export const READ_SCOPED = 'select from catalog_internal.scoping where scoped';

/** MARK_NEW for a catalog with rules of scope. A new SKU has no metadata yet. */
export const MARK_NEW_BY_SCOPE = `
  insert into catalog_internal.due (sku, lane, reason, live, due_at, outside_due_at, generation, rank)
  select d.sku, case when t.standing = 'out' then 0 else catalog_internal.lane_of(t.reason) end, t.reason, d.price_source = 'live',
    case when t.standing = 'out' then 'infinity' else now() end, case when t.standing <> 'in' then now() end, 1, coalesce(w.weight, 1)
  from diff d left join catalog_internal.watched w using (sku)
  cross join lateral catalog_internal.scope_of(d.sku, null, null, null, false) o
  cross join lateral (
    select standing, case when standing = 'asked' then 'scope' else 'new' end as reason
    from catalog_internal.scope_standing(o.place, 'pending', 'new', now()) as standing
  ) t
  where d.kind = 'new' order by d.sku`;

/**
 * Marks SKUs that were known before, in pieces of ten thousand, so that no array grows with the catalog. A SKU that
 * crossed counts as what the catalog now says, whatever its deferrals had taught.
 */
export const MARK_DUE = `
  select count(catalog_internal.mark_due(skus, mark, counts_as_live))
  from (
    select array_agg(sku order by sku) as skus, mark, counts_as_live
    from (
      select sku, mark, case when mark = 'new' or crossed then price_source = 'live' end as counts_as_live,
        (row_number() over (partition by mark order by sku) - 1) / 10000 as piece
      from diff where mark is not null and kind is distinct from 'new'
    ) marks
    group by mark, counts_as_live, piece order by mark, counts_as_live, piece
  ) pieces`;

/**
 * SKUs that are listed again without needing a refresh for it (DIFF). Because deltas report them from now on, each
 * waits for a sweep, counted from when it was last asked, and no longer for its turn among the unlisted. Excluded are
 * SKUs with a move that deltas have left out, or whose deferrals suggest that they are live: these would have to be
 * asked as soon in any case.
 */
export const SWEEP_RELISTED = `
  update catalog_internal.due l set reason = ${SNAPSHOT_REASON},
    lane = case when l.outside_due_at is null then catalog_internal.lane_of(${SNAPSHOT_REASON}) else l.lane end,
    due_at = greatest(l.due_at, s.asked_at + make_interval(secs => catalog_internal.snapshot_target(g))),
    outside_due_at = case when l.outside_due_at is not null
      then greatest(l.outside_due_at, s.asked_at + make_interval(secs => catalog_internal.snapshot_target(g))) end
  from diff d join catalog.skus s using (sku) cross join catalog_internal.settings g
  where d.skipped and l.sku = d.sku and l.reason = 'unlisted' and l.missed_moves is null and l.live_left = 0
    and coalesce(l.outside_due_at, l.due_at) > now()`;

export const COUNT_DIFF = `
  select count(*) filter (where kind = 'new')::int as added, count(*) filter (where kind = 'changed')::int as changed,
    count(*) filter (where crossed)::int as crossed, count(*) filter (where kind = 'absent')::int as absent,
    count(mark)::int as marked, count(*) filter (where skipped)::int as skipped
  from diff`;

/** What followers of catalog.changes are told, with SKUs that changed alike grouped. */
export const ADD_CHANGES = `
  with told as (
    select sku, case
        when kind = 'new' then '{state,price_source,in_manifest}'
        when kind = 'unread' then '{state,in_manifest}'
        when kind = 'absent' then '{in_manifest}'
        when price_source is not distinct from was_source then '{in_manifest}'
        when was_unlisted then '{price_source,in_manifest}'
        else '{price_source}'
      end::text[] as fields,
      case
        when kind = 'new' then array[null, null, null]
        when kind = 'unread' then array[null, null]
        when kind = 'absent' then '{true}'
        when price_source is not distinct from was_source then '{false}'
        when was_unlisted then array[was_source, 'false']
        else array[was_source]
      end as old_values,
      case
        when kind = 'new' then array['pending', price_source, 'true']
        when kind = 'unread' then '{pending,false}'
        when kind = 'absent' then '{false}'
        when price_source is not distinct from was_source then '{true}'
        when was_unlisted then array[price_source, 'true']
        else array[price_source]
      end as new_values
    from diff
    where kind in ('new', 'unread', 'absent') or kind = 'changed' and (was_unlisted or price_source is distinct from was_source)
  ),
  pieces as materialized (
    select array_agg(sku order by sku) as skus, fields, old_values, new_values
    from (
      select *, (row_number() over (partition by fields, old_values, new_values order by sku) - 1) / 1000 as piece from told
    ) t
    group by fields, old_values, new_values, piece
  )
  select catalog_internal.notify_changes() from (
    select count(catalog_internal.add_changes('sku', skus, null, null, fields, old_values, new_values, now())) as written from pieces
  ) p where written > 0`;

/** Whether the token stays: deltas have moved it since the manifest was asked for, or it is already the manifest's. */
const TOKEN_STAYS = `(snapshot_id is distinct from $3 and chain_broken_at is null or snapshot_id is not distinct from $1)`;

/**
 * $1 snapshot id, $2 generated_at, $3 token when the manifest was asked for, $4 lines, $5 live_priced_sku_count. If
 * the token moves, the left tokens are forgotten, because reports of deltas no longer cover the time since they were
 * left.
 */
export const MOVE_TOKEN = `
  with forgotten as (
    delete from catalog_internal.left_tokens where exists (select from catalog_internal.sync where not ${TOKEN_STAYS})
  )
  update catalog_internal.sync set
    snapshot_id = case when snapshot_id is distinct from $3 and chain_broken_at is null then snapshot_id else $1 end,
    snapshot_generated_at = coalesce($2, snapshot_generated_at),
    snapshot_moved_at = case when snapshot_id is distinct from $3 then snapshot_moved_at
      when $2::timestamptz is not null or snapshot_generated_at is null then null
      -- It says no more when a snapshot was built; that there is another one is as good.
      when snapshot_id is distinct from $1 then now() else snapshot_moved_at end,
    token_at = case when ${TOKEN_STAYS} then token_at else now() end,
    caught_up = caught_up and ${TOKEN_STAYS},
    built_after = case when ${TOKEN_STAYS} or snapshot_id is not distinct from $3 then built_after end,
    manifest_applied_at = now(), manifest_lines = $4,
    live_priced_sku_count = coalesce($5, live_priced_sku_count),
    catalog_fault = null, chain_broken_at = null, rejected_snapshot_id = null, manifest_refused = null,
    shrink_confirmed = false`;

/** SQL: whether the manifest lists other SKUs, or lists them in other cohorts. */
const LISTS_OTHERS = `exists (
  select from diff where kind in ('new', 'absent') or crossed or kind = 'changed' and was_unlisted
)`;

/** Runs before END_DOUBTS: notes whether a manifest requested because of differing counts lists anything new. */
export const NOTE_IDLE = `
  with gone as (
    delete from catalog_internal.idle_manifests
    where (select catalog_difference ? 'listed' from catalog_internal.sync) and ${LISTS_OTHERS}
  )
  insert into catalog_internal.idle_manifests
  select now() from catalog_internal.sync where catalog_difference ? 'listed' and not ${LISTS_OTHERS}`;

/**
 * The mirror now matches the manifest, so nothing that was found about the delta holds any more; only that the delta
 * was behind is remembered, until it moves by itself. $1 how many lines were rejected or doubled, $2 by how much live
 * SKUs were miscounted. A snapshot $3, built at $5, that deltas had left before it was asked for ($4) refutes nothing.
 * $6 whether it has been rebuilt since.
 */
export const END_DOUBTS = `
  update catalog_internal.sync y set
    delta_doubt = case when delta_doubt in ('behind', 'distrusted') then 'distrusted' end, behind_since = null,
    rebuilds = case when catalog_difference ? 'rebuilt' or $6::boolean then rebuilds + 1 else rebuilds end,
    catalog_differs_at = null, catalog_difference = null, manifest_unclear = $1, manifest_live_miscount = $2
  where snapshot_id = $3 or not exists (
    select from catalog_internal.left_tokens l where token = $3 and left_at < $4::timestamptz and ${tellsOf('$5')}
  )`;
