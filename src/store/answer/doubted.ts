import type { Tx } from '../connection/db.ts';
import type { Doubt } from './doubts.ts';
import type { SkuJudgement } from './judgements.ts';
import type { Oddity } from './plausibility.ts';
import type { DoubtedSku } from './types.ts';

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
