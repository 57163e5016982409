import type { BulkAnswer } from '../../partner/answers.ts';
import type { Applied } from '../../store/answer/apply.ts';
import { isLoss } from '../../store/answer/plausibility.ts';
import type { Claim } from '../../store/ledger/due.ts';
import type { SyncContext } from '../context.ts';
import { type Reconciliation, tally } from './reconciliation.ts';

/** Doubted SKUs, or members, that a log line names at most. */
const MAX_NAMED = 10;
/** Characters of a member's name that it contains at most. */
const MAX_NAME = 64;

/**
 * Reports what an answer changed and showed. `unpricedEntries`: entries of its records without a readable price.
 */
export function tellApplied(
  { emit }: Pick<SyncContext, 'emit'>,
  claim: Claim,
  reconciliation: Reconciliation,
  applied: Applied & { readonly unpricedEntries: number },
): void {
  emit({
    event: 'bulk.applied',
    asked: claim.skus.length,
    ...tally(reconciliation.skuAnswers.values()),
    unexpected: reconciliation.unexpected,
    late: claim.skus.length - applied.accepted,
    priceChanges: applied.priceChanges,
    metadataChanges: applied.metadataChanges,
    unpricedEntries: applied.unpricedEntries,
    reportSeconds: applied.reportSeconds,
    promises: applied.promises,
  });
  tellMembers({ emit }, applied.members);
  if (applied.sizeTypeChanges.length > 0) emit({ event: 'size-type.changed', skus: applied.sizeTypeChanges });
  tellDoubts({ emit }, applied);
}

/** Reports members of `size_map` that an answer shows not to be sizes. */
export function tellNotSizes({ emit }: Pick<SyncContext, 'emit'>, { notSizes = [] }: BulkAnswer): void {
  if (notSizes.length === 0) return;
  const members = notSizes.slice(0, MAX_NAMED).map((name) => name.slice(0, MAX_NAME));
  emit({ event: 'size-map.other-members', members });
}

function tellMembers(
  { emit }: Pick<SyncContext, 'emit'>,
  { muted, unmuted }: Pick<Applied['members'], 'muted' | 'unmuted'>,
): void {
  for (const { part, path } of muted)
    emit(part === 'column' ? { event: 'column.unsteady', path } : { event: 'member.muted', part, path });
  for (const { part, path } of unmuted)
    emit(part === 'column' ? { event: 'column.steady', path } : { event: 'member.unmuted', part, path });
}

function tellDoubts({ emit }: Pick<SyncContext, 'emit'>, { doubted, massMoved }: Applied): void {
  const named = (of: Applied['doubted']) => ({
    count: of.length,
    skus: of.slice(0, MAX_NAMED).map(({ sku }) => sku),
    oddities: [...new Set(of.map(({ oddity }) => oddity))],
  });
  const lost = doubted.filter(({ oddity }) => isLoss(oddity));
  const odd = doubted.filter(({ oddity }) => !isLoss(oddity));
  if (odd.length > 0) emit({ event: 'prices.implausible', ...named(odd) });
  if (lost.length > 0) emit({ event: 'prices.lost', ...named(lost) });
  if (massMoved?.event === 'began') {
    const { kind, answers, implausible, move, factor, skus } = massMoved;
    emit({ event: 'mass-move.began', kind, answers, implausible, move, factor, skus });
  }
  if (massMoved?.event === 'ended') emit({ event: 'mass-move.ended', lastedSeconds: massMoved.seconds });
  if (massMoved?.event === 'failed') emit({ event: 'mass-move.failed', problem: massMoved.problem });
}
