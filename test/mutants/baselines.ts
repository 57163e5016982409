import { faultsOf, type Mutant } from './mutant.ts';

const BASELINE = [
  'test/store/baseline-corners.pg.test.ts',
  'test/store/baseline.pg.test.ts',
  'test/store/rebaseline.pg.test.ts',
  'test/store/baseline-beside.pg.test.ts',
  'test/store/unlisted.pg.test.ts',
  'test/store/baseline-model.pg.test.ts',
];

/**
 * Faults in the statements of a baseline. Not included: that COMPARE leaves out SKUs that were never listed, and
 * that DIFF does; either is sufficient.
 */
export const BASELINES: readonly Mutant[] = [
  ...faultsOf(
    'src/store/catalog/compare-sql.ts',
    BASELINE,
    [
      'baseline: of a doubled SKU the first line counts',
      "order by price_source = 'live' desc, ctid",
      'order by ctid',
    ],
    [
      'baseline: one line more than one stays',
      'where s.ctid = d.ctid and d.nth > 1',
      'where s.ctid = d.ctid and d.nth > 2',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/unread-lines.ts',
    BASELINE,
    [
      'baseline: a SKU that no line could be read of is believed like one that deltas report',
      'select distinct sku, false from rejected_skus',
      'select distinct sku, true from rejected_skus',
    ],
    [
      'baseline: a known SKU that no line could be read of is believed as before',
      'l set missed_moves = 1',
      'l set missed_moves = null',
    ],
    [
      'baseline: a SKU whose line is read again is believed no more than before',
      'l set missed_moves = null from gone',
      'l set missed_moves = 1 from gone',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/baseline-sql.ts',
    BASELINE,
    [
      'baseline: a SKU of a rejected line is absent',
      'and not was_unlisted and sku not in (select sku from rejected_skus))',
      'and not was_unlisted)',
    ],
    [
      'baseline: the hash of a live line is compared',
      "when (hash_moved and price_source = 'snapshot' or was_unlisted)",
      'when (hash_moved or was_unlisted)',
    ],
    [
      'baseline: a SKU that is listed again is not asked about',
      "price_source = 'snapshot' or was_unlisted) and (not asked_since",
      "price_source = 'snapshot') and (not asked_since",
    ],
    [
      'baseline: a removed SKU that is listed again and was asked since is not asked about',
      "(not asked_since or state = 'removed') then",
      'not asked_since then',
    ],
    [
      'baseline: prices asked for before the snapshot are spared',
      'l.asked_claim > $2::bigint',
      'l.asked_claim < $2::bigint',
    ],
    [
      'baseline: a doubled SKU is not asked about',
      'sku in (select sku from duplicates) or coalesce(m.reported_at',
      'coalesce(m.reported_at',
    ],
    [
      'baseline: a SKU back from being live with its hash is asked at once',
      "when crossed and hash = hash_before_live then 'sweep'",
      '',
    ],
    [
      'baseline: an absent SKU keeps its hash',
      'set in_manifest = false, hash = null',
      'set in_manifest = false',
    ],
    [
      'baseline: a SKU that turns live forgets its hash',
      "hash_before_live = case when d.price_source = 'live' then coalesce(s.hash, s.hash_before_live) end\n",
      'hash_before_live = null\n',
    ],
    [
      'baseline: new SKUs that are live do not count as live',
      "'new', d.price_source = 'live', now()",
      "'new', false, now()",
    ],
    ['baseline: a new SKU has no rank', 'now(), 1, coalesce(w.weight, 1)', 'now(), 1, 1'],
    [
      'baseline: a SKU that crossed counts as before',
      "case when mark = 'new' or crossed then price_source = 'live' end",
      "case when mark = 'new' then price_source = 'live' end",
    ],
    [
      'baseline: listed again, a SKU waits as an unlisted one',
      'where d.skipped and l.sku = d.sku',
      'where d.skipped and false and l.sku = d.sku',
    ],
    [
      'baseline: the token goes back behind deltas',
      'snapshot_id = case when snapshot_id is distinct from $3 and chain_broken_at is null then snapshot_id else $1 end',
      'snapshot_id = $1',
    ],
    [
      'baseline: a broken chain stays broken',
      'chain_broken_at = null, rejected_snapshot_id = null',
      'rejected_snapshot_id = null',
    ],
    [
      'baseline: a confirmed shrink confirms the next one',
      'manifest_refused = null,\n    shrink_confirmed = false',
      'manifest_refused = null',
    ],
    ['baseline: without generated_at the snapshot has no age', 'coalesce($2, snapshot_generated_at)', '$2'],
    [
      'baseline: rest_moved marks',
      "was_unlisted or rest_moved then 'changed' end as kind",
      "was_unlisted then 'changed' end as kind",
    ],
  ),
  ...faultsOf(
    'src/store/catalog/sync-state.ts',
    [
      'test/store/baseline-corners.pg.test.ts',
      'test/store/schema.pg.test.ts',
      'test/store/rebaseline.pg.test.ts',
      'test/store/settings.pg.test.ts',
    ],
    [
      'snapshot: each answer of the manifest route names a new one',
      'then seen_claim else (select',
      'then (select last_value from catalog_internal.claim_numbers) else (select',
    ],
    [
      'snapshot: an id with another time is the same',
      ' and seen_generated_at is not distinct from ${generatedAt}::timestamptz',
      ' and ${generatedAt}::timestamptz is not distinct from ${generatedAt}::timestamptz',
    ],
    [
      'snapshot: that its token moved is forgotten where nobody says when it was built',
      'is null and snapshot_generated_at is not null then snapshot_moved_at end',
      'is null and false then snapshot_moved_at end',
    ],
    [
      'snapshot: gets older with an older answer',
      'coalesce(greatest(snapshot_generated_at, ${meta.generatedAt}), snapshot_generated_at)',
      'coalesce(${meta.generatedAt}, snapshot_generated_at)',
    ],
  ),
  ...faultsOf(
    'src/store/setup/sql-settings.ts',
    [
      'test/store/baseline-corners.pg.test.ts',
      'test/store/schema.pg.test.ts',
      'test/store/rebaseline.pg.test.ts',
      'test/store/settings.pg.test.ts',
    ],
    [
      'settings: the share is that of the account',
      'rate_share: mirror.maxPerWindow',
      'rate_share: rate.limit',
    ],
  ),
  ...faultsOf(
    'src/sync/delta.ts',
    ['test/sync/rejected-token.pg.test.ts'],
    ['delta: may remove the whole catalog', 'if (named === 0 || !isShrunk(', 'if (listed > 0 || !isShrunk('],
    [
      'delta: a confirmed removal is refused',
      'if (shrinkConfirmed || removed.length <=',
      'if (removed.length <=',
    ],
    [
      'delta: names that nobody lists are a loss',
      'isShrunk(listed - named, before',
      'isShrunk(listed - removed.length, before',
    ],
    [
      'delta: the second of two may remove what both together may not',
      'const before = Math.max(lines, listed);',
      'const before = listed;',
    ],
    [
      'delta: one that names nobody is too large, once few are left',
      'if (named === 0 || !isShrunk(',
      'if (!isShrunk(',
    ],
  ),
];
