import { type Sql, transaction, type Tx } from './db.ts';
import type { Claim } from './due.ts';

/** One size of a record, as it is to be stored. */
export interface PriceRow {
  readonly size: string;
  readonly price: number | null;
  /** The partner's entry as JSON text; null where it was just the number. */
  readonly entry: string | null;
}

/** Metadata of a record, as it is to be stored: columns of catalog.products. */
export interface ProductRow {
  readonly name: string | null;
  readonly model: string | null;
  readonly brand: string | null;
  readonly genderSize: string | null;
  readonly sizeType: string | null;
  readonly category: string | null;
  readonly sizeMapSizeType: string | null;
  /** The product object as JSON text. */
  readonly product: string;
}

/** The fate of one asked SKU. Waits are in milliseconds from now. */
export type Fate =
  | {
      readonly sku: string;
      readonly kind: 'record';
      readonly prices: readonly PriceRow[];
      readonly product: ProductRow;
    }
  | { readonly sku: string; readonly kind: 'not_found' }
  | { readonly sku: string; readonly kind: 'deferred'; readonly waitMs: number }
  | { readonly sku: string; readonly kind: 'error'; readonly waitMs: number };

/** When a SKU's next look is due after an answer, in milliseconds. Null: never by age. */
export interface NextLooks {
  readonly liveMs: number;
  /** Snapshot-priced: by sweep, or where that is off by the age of the metadata. */
  readonly snapshotMs: number;
  readonly snapshotReason: 'sweep' | 'metadata';
  readonly notFoundMs: number;
}

export interface Applied {
  /** SKUs whose claim was still ours. The rest of the answer came too late and changed nothing. */
  readonly accepted: number;
  readonly priceChanges: number;
  readonly metadataChanges: number;
  /** SKUs whose size keys changed their meaning (size_map.size_type corrected). */
  readonly sizeTypeChanges: readonly string[];
}

/**
 * Applies one bulk answer in one transaction: prices and their history, metadata and its history, SKU states, and the
 * ledger. A SKU counts only where the claim is still this one (a lease that ran out, or an answer applied before,
 * changes nothing), no newer request's answer was applied, and no delta removed the SKU after the request was sent.
 */
export async function applyAnswer(
  sql: Sql,
  claim: Claim,
  fates: readonly Fate[],
  next: NextLooks,
): Promise<Applied> {
  return await transaction(sql, async (tx) => {
    const asked = claim.skus.map(({ sku }) => sku);
    // Row locks in order of sku, SKUs before ledger, as every transaction here takes them.
    await tx`select from catalog.skus where sku = any(${asked}) order by sku for update`;
    const mine = await tx<{ sku: string; answerable: boolean }[]>`
      select d.sku, (s.asked_at is null or s.asked_at <= ${claim.askedAt})
          and (s.state <> 'removed' or s.removed_at <= ${claim.askedAt}) as answerable
      from catalog_internal.due d join catalog.skus s using (sku)
      where d.sku = any(${asked}) and d.claim = ${claim.number}
      order by d.sku for update of d`;
    const ours = new Map(mine.map(({ sku, answerable }) => [sku, answerable]));
    const answered = fates.filter(
      (fate) => ours.get(fate.sku) === true && (fate.kind === 'record' || fate.kind === 'not_found'),
    );
    const [{ count: priceChanges }, metadata] = await Promise.all([
      writePrices(tx, answered, claim.askedAt),
      writeProducts(tx, answered, claim.askedAt),
      writeStates(tx, answered, claim.askedAt),
    ]);
    await settleAnswered(
      tx,
      claim,
      fates.filter((f) => f.kind === 'record' || f.kind === 'not_found'),
      next,
    );
    await holdBack(tx, claim, fates);
    return { accepted: ours.size, priceChanges, ...metadata };
  });
}

async function writePrices(tx: Tx, answered: readonly Fate[], at: Date): Promise<{ count: number }> {
  const rows = answered.flatMap((fate) =>
    fate.kind === 'record' ? fate.prices.map((price) => ({ sku: fate.sku, ...price })) : [],
  );
  const [result] = await tx<[{ count: number }]>`
    with answered as (
      select sku, first_priced_at is not null as seen_before from catalog.skus
      where sku = any(${answered.map(({ sku }) => sku)})
    ),
    new as (
      select * from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.size)}::text[],
        ${rows.map((r) => r.price)}::int[], ${rows.map((r) => r.entry)}::text[]::jsonb[]) as n(sku, size, price, entry)
    ),
    old as (select p.* from catalog.prices p join answered using (sku)),
    diff as materialized (
      select sku, size, old.price as old_price, new.price as new_price, new.entry, new.sku is null as gone,
        old.price is distinct from new.price as moved, old.changed_at
      from new full join old using (sku, size)
      where new.sku is null or old.sku is null
        or old.price is distinct from new.price or old.entry is distinct from new.entry
    ),
    vanished as (
      delete from catalog.prices p using diff where diff.gone and p.sku = diff.sku and p.size = diff.size
    ),
    written as (
      insert into catalog.prices as p (sku, size, price, entry, changed_at)
      select sku, size, new_price, entry, case when moved then ${at}::timestamptz else coalesce(changed_at, ${at}) end
      from diff where not gone order by sku, size
      on conflict (sku, size) do update
        set price = excluded.price, entry = excluded.entry, changed_at = excluded.changed_at
    ),
    noted as (
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      select sku, size, old_price, new_price, ${at} from diff join answered using (sku)
      where moved and seen_before order by sku, size
      returning 1
    )
    select count(*)::int as count from noted`;
  return result;
}

type MetadataChanges = Pick<Applied, 'metadataChanges' | 'sizeTypeChanges'>;

async function writeProducts(tx: Tx, answered: readonly Fate[], at: Date): Promise<MetadataChanges> {
  const rows = answered.flatMap((fate) =>
    fate.kind === 'record' ? [{ sku: fate.sku, ...fate.product }] : [],
  );
  if (rows.length === 0) return { metadataChanges: 0, sizeTypeChanges: [] };
  const changes = await tx<{ sku: string; field: string }[]>`
    with new as (
      select * from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.name)}::text[],
        ${rows.map((r) => r.model)}::text[], ${rows.map((r) => r.brand)}::text[],
        ${rows.map((r) => r.genderSize)}::text[], ${rows.map((r) => r.sizeType)}::text[],
        ${rows.map((r) => r.category)}::text[], ${rows.map((r) => r.sizeMapSizeType)}::text[],
        ${rows.map((r) => r.product)}::text[]::jsonb[]
      ) as n(sku, name, model, brand, gender_size, size_type, category, size_map_size_type, product)
    ),
    fields as materialized (
      select new.sku, f.field, f.old_value, f.new_value
      from new join catalog.products old using (sku)
      cross join lateral (values
        ('name', old.name, new.name), ('model', old.model, new.model), ('brand', old.brand, new.brand),
        ('gender_size', old.gender_size, new.gender_size), ('size_type', old.size_type, new.size_type),
        ('category', old.category, new.category),
        ('size_map_size_type', old.size_map_size_type, new.size_map_size_type)
      ) as f(field, old_value, new_value)
      where f.old_value is distinct from f.new_value
    ),
    -- Members beyond the documented ones: the whole object is the field, where no column of its own tells the change.
    changes as materialized (
      select * from fields
      union all
      select new.sku, 'product', old.product::text, new.product::text
      from new join catalog.products old using (sku)
      where old.product is distinct from new.product and not exists (select from fields where fields.sku = new.sku)
    ),
    noted as (
      insert into catalog.product_history (sku, field, old_value, new_value, observed_at)
      select sku, field, old_value, new_value, ${at} from changes order by sku, field
    ),
    written as (
      insert into catalog.products as p (sku, name, model, brand, gender_size, size_type, category, size_map_size_type,
        product, refreshed_at, changed_at)
      select new.*, ${at}, ${at} from new order by sku
      on conflict (sku) do update set name = excluded.name, model = excluded.model, brand = excluded.brand,
        gender_size = excluded.gender_size, size_type = excluded.size_type, category = excluded.category,
        size_map_size_type = excluded.size_map_size_type, product = excluded.product,
        refreshed_at = excluded.refreshed_at,
        changed_at = case when exists (select from changes where changes.sku = p.sku) then excluded.changed_at else p.changed_at end
    )
    select sku, field from changes`;
  return {
    metadataChanges: changes.length,
    sizeTypeChanges: changes.flatMap(({ sku, field }) => (field === 'size_map_size_type' ? [sku] : [])),
  };
}

async function writeStates(tx: Tx, answered: readonly Fate[], at: Date): Promise<void> {
  await tx`
    update catalog.skus s set
      state = case when a.found then 'priced' when s.state = 'removed' then 'removed' else 'not_found' end,
      removed_at = case when a.found then null else s.removed_at end,
      first_priced_at = case when a.found then coalesce(s.first_priced_at, ${at}::timestamptz) else s.first_priced_at end,
      priced_at = ${at}, asked_at = ${at}
    from unnest(${answered.map(({ sku }) => sku)}::text[], ${answered.map(({ kind }) => Number(kind === 'record'))}::int[]::boolean[])
      as a(sku, found)
    where s.sku = a.sku`;
}

/**
 * Schedules the next look of answered SKUs, where no mark came since the claim; a newer mark leaves the SKU due. A
 * removed SKU that is still 0009 has been asked its once and is left alone until it is reported again.
 */
async function settleAnswered(
  tx: Tx,
  claim: Claim,
  answered: readonly Fate[],
  next: NextLooks,
): Promise<void> {
  const generation = new Map(claim.skus.map((sku) => [sku.sku, sku.generation]));
  const secs = (ms: number) => ms / 1000;
  await tx`
    update catalog_internal.due d set
      claim = null, held_until = null, deferrals = 0, failures = 0,
      due_at = case when d.generation = a.generation then next.due_at else d.due_at end,
      reason = case when d.generation = a.generation then next.reason else d.reason end,
      lane = case when d.generation = a.generation then catalog_internal.lane_of(next.reason) else d.lane end
    from unnest(${answered.map(({ sku }) => sku)}::text[], ${answered.map(({ sku }) => generation.get(sku) ?? -1)}::int[])
        as a(sku, generation)
      join catalog.skus s using (sku)
      cross join lateral (
        select case
          when s.state = 'removed' then 'infinity'::timestamptz
          when s.state = 'not_found' then now() + make_interval(secs => ${secs(next.notFoundMs)})
          when s.price_source = 'live' then now() + make_interval(secs => ${secs(next.liveMs)})
          else now() + make_interval(secs => ${secs(next.snapshotMs)})
        end as due_at,
        case
          when s.state in ('removed', 'not_found') then 'metadata'
          when s.price_source = 'live' then 'live'
          else ${next.snapshotReason}
        end as reason
      ) next
    where d.sku = a.sku and d.claim = ${claim.number}`;
}

/**
 * Deferred and erring SKUs stay due in their places and wait, whatever marks came meanwhile. A deferred SKU has shown
 * that it is computed live, so it counts against the live budget from here on (specification 4.1, bulk rules 3 and 4).
 */
async function holdBack(tx: Tx, claim: Claim, fates: readonly Fate[]): Promise<void> {
  const held = fates.filter((fate) => fate.kind === 'deferred' || fate.kind === 'error');
  if (held.length === 0) return;
  await tx`
    update catalog_internal.due d set
      claim = null,
      held_until = clock_timestamp() + make_interval(secs => h.wait),
      live = d.live or h.deferred,
      deferrals = d.deferrals + h.deferred::int,
      failures = case when h.deferred then d.failures else d.failures + 1 end,
      lane = case when h.deferred then d.lane else catalog_internal.lane_of('error') end
    from unnest(${held.map(({ sku }) => sku)}::text[], ${held.map(({ kind }) => Number(kind === 'deferred'))}::int[]::boolean[],
      ${held.map((fate) => fate.waitMs / 1000)}::float8[]) as h(sku, deferred, wait)
    where d.sku = h.sku and d.claim = ${claim.number}`;
}
