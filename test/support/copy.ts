import { expect } from 'vitest';
import { METADATA, METADATA_COLUMNS } from '../../src/declared/metadata.ts';
import type { Sql } from '../../src/store/db.ts';

/** A row of catalog.changes. */
export interface ChangeRow {
  readonly position: string;
  readonly kind: 'sku' | 'price' | 'product';
  readonly sku: string;
  readonly size: string | null;
  readonly old_price: number | null;
  readonly new_price: number | null;
  readonly field: string | null;
  readonly old_value: string | null;
  readonly new_value: string | null;
}

type Json = Record<string, unknown>;

interface CopiedSku {
  readonly is: Record<string, string | null>;
  readonly prices: Record<string, number>;
  product: Json | null;
}

/** The mirror, made of nothing but its changes: what a follower's own tables would have. */
export class MirrorCopy {
  readonly skus = new Map<string, CopiedSku>();
  /** What a change said had been before, and was not. */
  readonly faults: string[] = [];

  /** Applies changes in order; `replayed`: they may be known already (pieces of a snapshot), so what they say of before is not held to. */
  apply(changes: readonly ChangeRow[], replayed = false): void {
    for (const change of changes) this.#apply(change, replayed);
  }

  #apply(change: ChangeRow, replayed: boolean): void {
    const { kind, sku, size, field, old_value, new_value, old_price, new_price } = change;
    if (kind === 'sku' && field === 'state' && new_value === null) {
      this.skus.delete(sku);
      return;
    }
    const copied = this.skus.get(sku) ?? { is: {}, prices: {}, product: null };
    this.skus.set(sku, copied);
    const held =
      kind === 'price'
        ? (copied.prices[size ?? ''] ?? null)
        : field === 'product'
          ? null
          : (copied.is[field ?? ''] ?? null);
    const said = kind === 'price' ? old_price : field === 'product' ? null : old_value;
    if (!replayed && held !== said)
      this.faults.push(`${change.position}: ${sku} ${size ?? field ?? ''} was ${held}, not ${said}`);
    if (kind === 'price') {
      if (new_price === null) delete copied.prices[size ?? ''];
      else copied.prices[size ?? ''] = new_price;
      return;
    }
    if (field !== 'product') copied.is[field ?? ''] = new_value;
    if (kind === 'product') copied.product = productAfter(copied.product, field ?? '', old_value, new_value);
  }
}

/** The object after a change of a product, as catalog.product_after has it. */
function productAfter(
  product: Json | null,
  field: string,
  old: string | null,
  now: string | null,
): Json | null {
  if (field === 'product')
    return merged(product, JSON.parse(old ?? 'null'), JSON.parse(now ?? 'null')) as Json;
  const [part, member] = METADATA[field as keyof typeof METADATA];
  return part === 'product' && product !== null ? { ...product, [member]: now } : product;
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function merged(held: unknown, were: unknown, are: unknown): unknown {
  if (!isObject(held) || !isObject(were) || !isObject(are)) return are;
  const kept = Object.entries(held).filter(([name]) => !(name in were) || name in are);
  const moved = Object.entries(are).map(([name, value]) => [name, merged(held[name], were[name], value)]);
  return Object.fromEntries([...kept, ...moved]) as Json;
}

/** The copy is the mirror, table by table and row by row; metadata as far as it is not muted. */
export async function expectCopied(sql: Sql, copy: MirrorCopy): Promise<void> {
  const rows = await sql<
    { sku: string; is: Record<string, string | null>; prices: object; product: object | null }[]
  >`
    select sku, jsonb_build_object('state', state, 'price_source', price_source, 'in_manifest', in_manifest::text)
        || coalesce(to_jsonb(p) - '{sku,product,refreshed_at,changed_at}'::text[], '{}') as is,
      coalesce((select jsonb_object_agg(size, price) from catalog.prices where sku = s.sku and price is not null), '{}') as prices,
      p.product
    from catalog.skus s left join catalog.products p using (sku) order by sku`;
  const columns = ['state', 'price_source', 'in_manifest', ...METADATA_COLUMNS];
  const whole = (is: Record<string, string | null>) =>
    Object.fromEntries(columns.map((column) => [column, is[column] ?? null]));
  const mirror = rows.map(({ sku, is, prices, product }) => ({ sku, is: whole(is), prices, product }));
  const copied = [...copy.skus]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([sku, { is, prices, product }]) => ({ sku, is: whole(is), prices, product }));
  expect(copied).toEqual(mirror);
}
