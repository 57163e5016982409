import { METADATA_COLUMNS } from '../../declared/metadata.ts';
import { allSent, type Tx } from '../connection/db.ts';
import type { PriceDifference } from './differences.ts';
import type { Doubt } from './doubts.ts';
import type { AnswerEffects } from './effects.ts';
import type { SkuJudgement } from './judgements.ts';
import type { Oddity } from './plausibility.ts';
import type { DoubtedSku, SkuResult } from './types.ts';

/** Writes what an answer says of prices that the mirror does not hold. */
export async function writePrices(tx: Tx, diff: readonly PriceDifference[], at: Date): Promise<void> {
  if (diff.length === 0) return;
  await tx`
    with diff as materialized (
      select * from unnest(${diff.map((d) => d.sku)}::text[], ${diff.map((d) => d.size)}::text[],
        ${diff.map((d) => d.newPrice)}::int[], ${diff.map((d) => d.entry)}::text[]::jsonb[],
        ${diff.map((d) => d.how)}::text[]) as d(sku, size, price, entry, how)
    ),
    vanished as (
      delete from catalog.prices p using diff where how = 'gone' and p.sku = diff.sku and p.size = diff.size
    ),
    -- An update and an insert, where an upsert would lock each row before it writes it. The SKU's row is locked.
    changed as (
      update catalog.prices p set price = diff.price, entry = diff.entry,
        changed_at = case when how = 'moved' then ${at}::timestamptz else p.changed_at end
      from diff where how in ('moved', 'entry') and p.sku = diff.sku and p.size = diff.size
    )
    insert into catalog.prices (sku, size, price, entry, changed_at)
    select sku, size, price, entry, ${at} from diff where how = 'appeared' order by sku, size`;
}

/**
 * Writes the metadata of answered SKUs: what they say of it where it is to be `renewed`, else that it was seen again;
 * that it has `changed` where more has than members that always do.
 */
export async function writeProducts(
  tx: Tx,
  answered: readonly SkuResult[],
  { renewed, changed }: Pick<AnswerEffects, 'renewed' | 'changed'>,
  at: Date,
): Promise<void> {
  const records = answered.flatMap((result) =>
    result.kind === 'record' ? [{ sku: result.sku, ...result.product }] : [],
  );
  const same = records.filter(({ sku }) => !renewed.has(sku)).map(({ sku }) => sku);
  const rows = records.filter(({ sku }) => renewed.has(sku));
  const columns = METADATA_COLUMNS.map((column) => tx`, ${tx(column)}`);
  const values = METADATA_COLUMNS.map((column) => tx`, ${rows.map((r) => r[column])}::text[]`);
  const renewals = METADATA_COLUMNS.map(
    (column) => tx`, ${tx(column)} = coalesce(excluded.${tx(column)}, p.${tx(column)})`,
  );
  await allSent([
    same.length > 0 && tx`update catalog.products set refreshed_at = ${at} where sku = any(${same})`,
    rows.length > 0 &&
      tx`
      insert into catalog.products as p (sku, product ${columns}, refreshed_at, changed_at)
      select n.*, ${at}, ${at}
      from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.product)}::text[]::jsonb[] ${values})
        as n(sku, product ${columns})
      order by sku
      on conflict (sku) do update set product = p.product || excluded.product,
        refreshed_at = excluded.refreshed_at,
        changed_at = case when excluded.sku = any(${[...changed]}::text[]) then excluded.changed_at else p.changed_at end ${renewals}`,
  ]);
}

/** Writes of which SKUs a doubt begins, or ends. Call this with their rows of the ledger locked. */
export async function writeDoubts(tx: Tx, judged: readonly SkuJudgement[], at: Date): Promise<void> {
  const rows = judged.flatMap(({ sku, judgement }): DoubtRow[] => {
    if (judgement.kind === 'begins') {
      const { doubt, oddity, believed } = judgement;
      return [{ sku, doubt, oddity, believed: JSON.stringify(Object.fromEntries(believed)) }];
    }
    return judgement.kind === 'ends' ? [{ sku, doubt: null, oddity: null, believed: null }] : [];
  });
  if (rows.length === 0) return;
  await tx`
    update catalog_internal.due d set doubt = n.doubt, oddity = n.oddity, believed = n.believed,
      doubted_at = case when n.doubt is not null then ${at}::timestamptz end
    from unnest(${rows.map(({ sku }) => sku)}::text[], ${rows.map(({ doubt }) => doubt)}::text[],
      ${rows.map(({ oddity }) => oddity)}::text[],
      ${rows.map(({ believed }) => believed)}::text[]::jsonb[]) as n(sku, doubt, oddity, believed)
    where d.sku = n.sku`;
}

interface DoubtRow {
  readonly sku: string;
  readonly doubt: Doubt | null;
  readonly oddity: Oddity | null;
  /** JSON text. */
  readonly believed: string | null;
}

/** SKUs of which a doubt begins, but for those that have only moved during a mass move. Pure. */
export const newlyDoubted = (judged: readonly SkuJudgement[]): DoubtedSku[] =>
  judged.flatMap(({ sku, judgement }) =>
    judgement.kind === 'begins' && judgement.oddity !== null ? [{ sku, oddity: judgement.oddity }] : [],
  );
