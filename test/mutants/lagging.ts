import { faultsOf, type Mutant } from './mutant.ts';

const LAGGING = ['test/store/lagging-manifest.pg.test.ts'];

/** Faults in handling a manifest whose snapshot deltas have already passed. */
export const LAGGING_MANIFESTS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/catalog/tokens.ts',
    LAGGING,
    [
      'lagging: the first time that a token was left counts',
      'do update set left_at = excluded.left_at',
      'do nothing',
    ],
    ['lagging: a token that stays is left', 'where snapshot_id <> ${toSnapshot}', 'where true'],
    ['lagging: the present token may have been left', 'and y.snapshot_id is distinct from l.token', ''],
    ['lagging: what was left once lags for ever', 'y.snapshot_id <> $1 and l.left_at', 'l.left_at'],
    [
      'lagging: all that came to the present token is newer than it',
      "y.token_at + interval '1 microsecond'",
      "y.token_at - interval '1 second'",
    ],
    [
      'lagging: a manifest of the present token is newer than an unfinished delta',
      "then y.token_at + interval '1 microsecond'",
      'then null',
    ],
    [
      'lagging: reports from before the request are older',
      'else least(l.left_at, r.left_at) end)::text',
      'else r.left_at end)::text',
    ],
    [
      'lagging: left tokens are kept for good',
      'where left_at < clock_timestamp() - make_interval',
      'where left_at > clock_timestamp() + make_interval',
    ],
    [
      'built again: what was built after its id was left is older',
      "l.left_at + interval '1 hour' or y.rebuilds > 0",
      "l.left_at + interval '1000 hours' or y.rebuilds > 0",
    ],
    ['built again: the time of an answer is a build', ' or y.rebuilds > 0, true)', ', true)'],
    ['lagging: left tokens have no number', 'or left_at <= (', 'or false and left_at <= ('],
  ),
  ...faultsOf(
    'src/store/catalog/tokens.ts',
    ['test/store/overlapping-delta.pg.test.ts'],
    [
      'lagging: reports are dated by when their delta was committed',
      'least(l.left_at, r.left_at)',
      'l.left_at',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/baseline.ts',
    ['test/store/two-manifests.pg.test.ts'],
    [
      'baseline: a manifest that is being merged is not waited for',
      "    await run('select from catalog_internal.sync for update');\n",
      '',
    ],
    [
      'baseline: a manifest was applied when its merge ended',
      ' or manifest_applied_at::text is distinct from $2',
      ' or false and manifest_applied_at::text is distinct from $2',
    ],
  ),
  ...faultsOf('src/store/catalog/baseline-merge.ts', LAGGING, [
    'lagging: the token goes back',
    'lagSeconds === null ? token.tokenAtRequest : snapshotId',
    'token.tokenAtRequest',
  ]),
  ...faultsOf(
    'src/store/catalog/baseline-sql.ts',
    [...LAGGING, 'test/store/baseline-model.pg.test.ts'],
    [
      'lagging: left tokens outlive the chain',
      'exists (select from catalog_internal.sync where not ${TOKEN_STAYS})',
      'false',
    ],
    [
      'lagging: what was reported as live is snapshot-priced',
      "case when ${REPORTED_AS_LIVE} then 'live' else s.price_source end as price_source",
      's.price_source',
    ],
    [
      'lagging: what stays live has a hash',
      'case when ${REPORTED_AS_LIVE} then null else s.hash end as hash',
      's.hash',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/delta-reports.ts',
    ['test/store/overlapping-delta.pg.test.ts'],
    [
      'lagging: what a delta reports again keeps the time of a run that broke off',
      'and not (${moves} and coalesce(s.reported_at > y.token_at, false)) as still_live',
      'as still_live',
    ],
  ),
  ...faultsOf('src/store/catalog/delta.ts', LAGGING, [
    'lagging: a large delta leaves its token with its last part',
    'reportedAt[0] ?? at',
    'at',
  ]),
  ...faultsOf(
    'src/store/clock.ts',
    ['test/store/clock.pg.test.ts'],
    [
      'lagging: a token that was left just now is left after its reports',
      'where left_at > clock_timestamp() - make_interval(secs => ${shift})`',
      'where left_at > clock_timestamp()`',
    ],
    [
      'lagging: what a clock ahead has dated stays ahead',
      'left_at = least(left_at, clock_timestamp()) -',
      'left_at = left_at -',
    ],
  ),
  ...faultsOf(
    'src/store/setup/account.ts',
    ['test/store/account.pg.test.ts'],
    ['lagging: an adopted account has left tokens of the other', "  'left_tokens',\n", ''],
  ),
  ...faultsOf(
    'src/sync/manifest-decision.ts',
    ['test/sync/manifest-decision.test.ts'],
    [
      'lagging: while the delta is late, a snapshot that deltas have left is fetched each hour',
      ' && !waiting.hasLeft;',
      ';',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/standing.ts',
    ['test/sync/rejected-token.pg.test.ts'],
    ['lagging: nobody asks whether the snapshot was left', 'await isLeft(sql, named)', 'false'],
  ),
  ...faultsOf(
    'src/sync/catalog-check-decision.ts',
    ['test/sync/catalog-standing.test.ts'],
    [
      'lagging: a snapshot that deltas have left is newer than theirs',
      ' || hasLeft) return false;',
      ') return false;',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/standing.ts',
    ['test/sync/built-again.pg.test.ts'],
    [
      'built again: an id that was left counts as named when the other one of it was',
      'case when not exists (select from catalog_internal.left_tokens',
      'case when true or not exists (select from catalog_internal.left_tokens',
    ],
    [
      'built again: a distrusted delta is never behind of an id that was named before',
      'and ${isOfTime} then (n ->>',
      'and false then (n ->>',
    ],
  ),
  ...faultsOf(
    'src/sync/manifest-decision.ts',
    ['test/sync/manifest-decision.test.ts'],
    [
      'built again: the id of a rejected token is refused for good',
      'snapshotId === rejectedSnapshotId && !isLater',
      'snapshotId === rejectedSnapshotId',
    ],
  ),
  ...faultsOf(
    'src/sync/catalog-check-decision.ts',
    ['test/sync/built-again.pg.test.ts'],
    [
      'built again: what a check could not store is forgotten',
      '(appliedGeneratedAt !== null && named.generatedAt > appliedGeneratedAt)',
      'false',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/baseline-sql.ts',
    ['test/sync/built-again.pg.test.ts'],
    [
      'built again: manifests of snapshots that were left are not counted',
      ' or $6::boolean then rebuilds + 1',
      ' or $6::boolean and false then rebuilds + 1',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/baseline-sql.ts',
    ['test/store/lagging-manifest.pg.test.ts'],
    [
      'lagging: a snapshot that deltas have left ends the doubt of theirs',
      'where snapshot_id = $3 or not exists (',
      'where true or not exists (',
    ],
  ),
];
