import type { Sql } from '../../store/db.ts';
import { readSyncState } from '../../store/sync-state.ts';
import type { OwnMirror } from './partner.ts';

const SAMPLE = 60;

/** What the mirror knows already: its token, and some SKUs where no manifest can be read. Null: there is no mirror yet. */
export async function readOwnMirror(sql: Sql | null): Promise<OwnMirror> {
  if (sql === null) return { token: null, skus: { snapshot: [], live: [] } };
  const { snapshotId } = await readSyncState(sql);
  const rows = await sql<{ sku: string; live: boolean }[]>`
    (select sku, false as live from catalog.skus where state = 'priced' and price_source = 'snapshot' limit ${SAMPLE})
    union all (select sku, true from catalog.skus where state = 'priced' and price_source = 'live' limit 2)`;
  const of = (isLive: boolean) => rows.filter(({ live }) => live === isLive).map(({ sku }) => sku);
  return { token: snapshotId, skus: { snapshot: of(false), live: of(true) } };
}
