import type { BaselineApplied, BaselineToken } from '../../src/store/catalog/baseline-merge.ts';
import { Baseline, type StagedCounts } from '../../src/store/catalog/baseline.ts';
import type { StagedLine } from '../../src/store/catalog/compare-sql.ts';
import { connectAlone, type DatabaseUrl, type Sql } from '../../src/store/connection/db.ts';
import { found, ledger, answerAsked, type TestStore } from './support.ts';

/** When the manifest's snapshot was built: long before the test. */
export const GENERATED_AT = new Date(Date.now() - 3 * 3_600_000);

/** Returns the newest claim, because the snapshot is named only by the manifest that is merged. */
async function newestClaim(url: DatabaseUrl): Promise<string> {
  const client = await connectAlone(url, { application_name: 'test' });
  try {
    const { rows } = await client.query<{ claim: string }>(
      'select last_value::text as claim from catalog_internal.claim_numbers',
    );
    return rows[0]?.claim ?? '';
  } finally {
    await client.end();
  }
}

export function line(sku: string, differs: Partial<StagedLine> = {}): StagedLine {
  const live = differs.priceSource === 'live';
  const updatedAt = '2026-11-20T10:00:00.123Z';
  return { sku, sizes: 3, hash: live ? null : 'h1', priceSource: 'snapshot', updatedAt, ...differs };
}

export interface ManifestRun {
  readonly rejected?: readonly string[];
  readonly token?: Partial<BaselineToken>;
  /** What happens between requesting the manifest and merging it. */
  readonly meanwhile?: () => Promise<unknown>;
  /** What happens once everything is staged and counted. */
  readonly beforeMerge?: () => Promise<unknown>;
  /** The pool of the daemon that applies it. */
  readonly pool?: Sql;
}

/** Applies a baseline from its first to its last step, as syncManifest does. */
export async function baseline(
  url: DatabaseUrl,
  lines: readonly StagedLine[],
  { rejected = [], token = {}, meanwhile, beforeMerge, pool }: ManifestRun = {},
): Promise<{
  staged: StagedCounts;
  applied: Omit<BaselineApplied, 'lagSeconds'>;
  lagSeconds: number | null;
}> {
  const run = await Baseline.open(url, pool);
  try {
    const moment = await run.moment();
    const seenClaim = await newestClaim(url);
    await meanwhile?.();
    const half = Math.ceil(lines.length / 2);
    await run.stage(lines.slice(0, half), rejected);
    await run.stage(lines.slice(half), []);
    const staged = await run.count();
    await beforeMerge?.();
    const { lagSeconds, ...applied } = await run.merge({
      snapshotId: 'm1',
      generatedAt: GENERATED_AT,
      seenClaim,
      // Long ago: no cache has anything from before.
      seenAt: new Date(0),
      requestedAt: moment.at,
      tokenAtRequest: moment.token,
      lines: lines.length,
      livePricedSkuCount: lines.filter(({ priceSource }) => priceSource === 'live').length,
      ...token,
    });
    return { staged, applied, lagSeconds };
  } finally {
    await run.close();
  }
}

export async function skuRow(sql: Sql, sku: string) {
  const [row] = await sql`
    select price_source as source, hash, sizes, in_manifest as listed from catalog.skus where sku = ${sku}`;
  return row;
}

/** Returns the SKUs that are due now, with the reason of their mark. */
export async function marks(sql: Sql): Promise<Record<string, string>> {
  const rows = [...(await ledger(sql)).values()].filter(({ dueIn }) => dueIn <= 0);
  return Object.fromEntries(rows.map(({ sku, reason }) => [sku, reason]));
}

/** Makes a mirror of these lines, with everything priced and nothing due. */
export async function standing({ sql, url }: TestStore, ...lines: readonly StagedLine[]): Promise<void> {
  await baseline(url, lines, { token: { snapshotId: 'm0' } });
  await answerAsked(sql, ...lines.map(({ sku }) => found(sku, { 9: 90 })));
  // The refreshes were long ago: nothing was requested since the next snapshot was built.
  await sql`update catalog.skus set asked_at = asked_at - interval '9 hours', priced_at = priced_at - interval '9 hours'`;
}
