import { doubling } from '../../lib/duration.ts';
import { type Sql, transaction } from '../connection/db.ts';
import { FORGET_SNAPSHOT_ID } from './learned-names.ts';

/* What the delta route says of its token, where it does not answer with a delta (partner rule 4.2.delta). */

/** The partner's codes of a fault of the catalog, by the kind of its error (partner rules 7.3.0012, 7.3.0014). */
const FAULT_CODES = { 'no-snapshot': '0012', 'snapshot-stale': '0014' } as const;

/** Notes a fault of the catalog, until a delta or a manifest is applied; other errors say nothing of it. */
export async function noteCatalogFault(sql: Sql, { kind }: { readonly kind: string }): Promise<void> {
  if (kind !== 'no-snapshot' && kind !== 'snapshot-stale') return;
  await sql`update catalog_internal.sync set catalog_fault = ${FAULT_CODES[kind]}`;
}

/**
 * The chain behind `token` is broken (0010, 0013, an unusable token): a fresh manifest is due. At once the first
 * time; when fresh manifests do not help, after a minute, doubling to an hour. False where that is known already, or
 * it is another token by now. `isUnknown`: the partner has no such snapshot. Where that is so of a second manifest's,
 * and no delta was applied between, the field that it is read from may not be the identifier: it is found anew.
 */
export async function noteBrokenChain(sql: Sql, token: string, isUnknown = false): Promise<boolean> {
  return await transaction(sql, async (tx) => {
    const broken = await tx<{ breaks: number }[]>`
      update catalog_internal.sync
      set rejected_snapshot_id = ${token}, chain_broken_at = now(), chain_breaks = chain_breaks + 1
      where snapshot_id = ${token} and chain_broken_at is null
      returning chain_breaks as breaks`;
    const breaks = broken[0]?.breaks;
    if (breaks === undefined) return false;
    if (isUnknown && breaks > 1) await tx.unsafe(FORGET_SNAPSHOT_ID);
    const waitMs = breaks === 1 ? 0 : doubling(60_000, breaks - 1, 3_600_000);
    await tx`
      update catalog_internal.tasks set next_at = least(next_at, now() + make_interval(secs => ${waitMs / 1000}))
      where task = 'manifest'`;
    return true;
  });
}

/**
 * The token that was rejected is answered all the same. Where the manifest was only tried again because it offers no
 * other token, its next run is by its schedule again, `manifestMs` after the last one that was applied: else each
 * stray rejection would cost a download.
 */
export async function noteChainRestored(sql: Sql, manifestMs: number): Promise<void> {
  await sql`
    update catalog_internal.tasks t set failures = 0,
      next_at = greatest(clock_timestamp(), s.manifest_applied_at + make_interval(secs => ${manifestMs / 1000}))
    from catalog_internal.sync s
    where t.task = 'manifest' and t.failures > 0 and t.outcome = 'rejected-token' and t.running_until is null
      and s.chain_broken_at is null`;
}
