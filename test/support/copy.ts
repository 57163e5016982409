import { expect } from 'vitest';
import { type Change, productAfter } from '../../src/client/change.ts';
import { METADATA_COLUMNS } from '../../src/declared/metadata.ts';
import type { Sql } from '../../src/store/connection/db.ts';

/** A row of catalog.changes, as a follower's program receives it. */
export type ChangeRow = Change;

type Json = Readonly<Record<string, unknown>>;

interface CopiedSku {
  readonly is: Record<string, string | null>;
  readonly prices: Record<string, number>;
  product: Json | null;
}

/** A copy of the mirror made only from its changes, as a follower's own tables would contain it. */
export class MirrorCopy {
  readonly skus = new Map<string, CopiedSku>();
  /** Previous values in changes that did not match the copy. */
  readonly faults: string[] = [];

  /**
   * Applies changes in order. With `replayed`, they may be known already (pieces of a snapshot), so their previous
   * values are not checked.
   */
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
    copied.product = productAfter(copied.product, change);
  }
}

/** Expects the copy to equal the mirror, table by table and row by row; metadata only if it is not muted. */
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
