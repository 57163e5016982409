import { faultsOf, type Mutant } from './mutant.ts';

const PURE = ['test/sync/catalog-standing.test.ts'];
const CHECKS = ['test/sync/catalog-check.pg.test.ts'];
const ANSWERS = ['test/sync/delta-answers.pg.test.ts'];
const CACHED = ['test/partner/cached-answers.test.ts'];

/**
 * Faults that remove a part of comparing the mirror with what the manifest route says (src/sync/catalog-check.ts).
 */
export const CATALOG_CHECKS: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/catalog-check-decision.ts',
    PURE,
    [
      'catalog check: a manifest route that lags behind is an alarm',
      'return generatedAt > tokenGeneratedAt;',
      'return true;',
    ],
    ['catalog check: a token that was never named is older than all', 'firstNamedAt > tokenAt && (', '('],
    [
      'catalog check: what was built before the token came is newer',
      '(generatedAt === null || isBuiltThen || generatedAt > tokenAt)',
      'true',
    ],
    ['catalog check: ordinary lag is an alarm', '>= deltaLateAfterMs;', '>= 0;'],
    [
      'catalog check: a delta that nobody has read is behind',
      'hasLasted && isRead && isReadNow',
      'hasLasted',
    ],
    ['catalog check: a pause makes the delta look behind', 'isRead && isReadNow ?', 'isRead ?'],
    [
      'catalog check: a delta that was behind is trusted again at once',
      "if (doubt === 'distrusted') return isAfter",
      'if (doubt === null) return isAfter',
    ],
    [
      'catalog check: a snapshot that is built again is the same',
      'named.generatedAt > tokenGeneratedAt ||',
      '',
    ],
    [
      'catalog check: the time of an answer is a build, each time',
      'isLater && hasWaited(standing, rebuilds, waits)',
      'isLater',
    ],
    ['catalog check: counts may differ by nothing', 'Math.abs(listed) > most', 'Math.abs(listed) > 0'],
    [
      'catalog check: lines that were unclear are not allowed for',
      'const most = unclear + ',
      'const most = ',
    ],
    [
      'catalog check: a miscount of the manifest is a difference',
      'livePricedSkuCount - liveMiscount - ',
      'livePricedSkuCount - ',
    ],
    ['catalog check: an incident is a difference', '|| livePricedSkuCount === skuCount', ''],
    ['catalog check: lost live SKUs are none', '|| Math.abs(live) > most', ''],
  ),
  ...faultsOf(
    'src/sync/catalog-check.ts',
    CHECKS,
    ['catalog check: no manifest for a delta that is behind', 'if (isBehind || differs', 'if (differs'],
    ['catalog check: no manifest for a snapshot that differs', 'isBehind || differs ||', 'isBehind ||'],
    [
      'catalog check: the delta is not asked at once',
      "(doubt === 'suspected' && doubt !== standing.doubt)",
      'false',
    ],
    ['catalog check: a miscount is an incident', '{ miscount: standing.liveMiscount }', '{}'],
    ['catalog check: nobody says so', "if (doubt === 'behind') {", 'if (doubt === null) {'],
    [
      'catalog check: a suspicion waits for the next hour',
      'nextInMs: nextCheckMs(doubtAfter(asked.value, standing), standing, ctx.settings.intervals)',
      'nextInMs',
    ],
    [
      'catalog check: a cached manifest answer is a check',
      "answered.kind === 'answer' && answered.value.isOld",
      'false',
    ],
    [
      'catalog check: an older snapshot of the same name counts',
      'judgeOffer(asked.value, state) === null',
      'true',
    ],
    [
      'catalog check: that a snapshot was built again is forgotten',
      "(before !== null && 'rebuilt' in before && !isAsBefore) ||",
      '',
    ],
    ['catalog check: that a snapshot was built again is never taken back', ' && !isAsBefore) ||', ') ||'],
    [
      'catalog check: an answer without a time takes back that a snapshot was built again',
      'named.generatedAt !== null && named.generatedAt.getTime() ===',
      'named.generatedAt === null || named.generatedAt.getTime() ===',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/standing.ts',
    CHECKS,
    [
      'catalog check: a delta that is applied in part is a loss',
      "running_until is null and outcome = 'done'",
      "outcome = 'done'",
    ],
    [
      'catalog check: a delta that broke off is a loss',
      "running_until is null and outcome = 'done'",
      'running_until is null',
    ],
    [
      'catalog check: live SKUs are not counted',
      "filter (where price_source = 'live')",
      'filter (where false)',
    ],
    [
      'catalog check: SKUs that nobody lists are counted',
      'from catalog.skus where in_manifest`',
      'from catalog.skus`',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/delta.ts',
    [...CHECKS, ...ANSWERS],
    [
      'catalog check: a delta that leads to the named snapshot stays suspected',
      "(seen_snapshot_id = ${toSnapshot} or delta_doubt = 'distrusted')",
      "delta_doubt = 'distrusted'",
    ],
    [
      'catalog check: a delta that has moved by itself is never trusted again',
      "(seen_snapshot_id = ${toSnapshot} or delta_doubt = 'distrusted')",
      'seen_snapshot_id = ${toSnapshot} and false',
    ],
    [
      'delta: tokens that were once of each answer are for ever',
      'own_tokens = snapshot_id <> ${toSnapshot} and (',
      'own_tokens = (',
    ],
    [
      'delta: tokens of each answer are learned anew each time',
      'and (own_tokens or ${ownToken})',
      'and ${ownToken}',
    ],
    [
      'delta: a larger answer refutes no limit',
      '${count} > round_changed then null',
      '${count} > round_changed then round_changed',
    ],
    ['delta: a small number of SKUs is a limit', 'count >= LEAST_LIMIT &&', 'count > 0 &&'],
    ['delta: any number of SKUs is a limit', '&& count % LIMIT_STEP === 0', ''],
    [
      'delta: a manifest for each answer that may be cut',
      'or limit_suspected_at < now()',
      'or true or limit_suspected_at < now()',
    ],
  ),
  ...faultsOf(
    'src/sync/delta.ts',
    ANSWERS,
    ['delta: three empty answers are the end', 'state.ownTokens ? MAX_OWN_HOPS : MAX_HOPS', 'MAX_OWN_HOPS'],
    [
      'delta: tokens of each answer are followed on and on',
      'state.ownTokens ? MAX_OWN_HOPS : MAX_HOPS',
      'MAX_HOPS',
    ],
    ['delta: what a cache has kept is the end', 'delta.isOld !== true && (', '('],
  ),
  ...faultsOf('src/sync/delta.ts', CHECKS, [
    'catalog check: where a delta led that was behind is found out in an hour',
    'if (deltaBehindSince !== null) await requestTask',
    'if (false) await requestTask',
  ]),
  ...faultsOf(
    'src/store/catalog/baseline-sql.ts',
    CHECKS,
    [
      'catalog check: a manifest has the delta trusted again',
      "when delta_doubt in ('behind', 'distrusted') then 'distrusted' end",
      'when false then null end',
    ],
    ['catalog check: snapshots that are built again are not counted', 'then rebuilds + 1', 'then rebuilds'],
    [
      'catalog check: manifests for counts of answers are not counted',
      "where catalog_difference ? 'listed' and not ${LISTS_OTHERS}`",
      'where false`',
    ],
    [
      'catalog check: manifests that had what counts said are counted',
      'from catalog_internal.sync) and ${LISTS_OTHERS}',
      'from catalog_internal.sync) and false',
    ],
    [
      'catalog check: a manifest leaves the difference',
      'catalog_differs_at = null, catalog_difference = null',
      'rejected_snapshot_id = null',
    ],
    [
      'catalog check: what was unclear is forgotten',
      'manifest_unclear = $1, manifest_live_miscount = $2',
      'manifest_unclear = 0 * $1::int, manifest_live_miscount = 0 * $2::int',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/sync-state.ts',
    CHECKS,
    [
      'catalog check: a build time that stands still changes nothing',
      ') then 0 else rebuilds end',
      ') then rebuilds else rebuilds end',
    ],
    [
      'catalog check: only the last named snapshot is known',
      'order by nth limit ${NAMED_KEPT}',
      'order by nth limit 1',
    ],
    [
      'catalog check: a later time of the own snapshot has its manifest refused',
      'case when ${isOwnNamedBefore(sql, meta)} then snapshot_generated_at',
      'case when false then snapshot_generated_at',
    ],
    [
      'catalog check: the own snapshot never has its time from the manifest route',
      'case when ${isOwnNamedBefore(sql, meta)} then snapshot_generated_at',
      'case when snapshot_id = ${meta.snapshotId} then snapshot_generated_at',
    ],
  ),
  ...faultsOf(
    'src/partner/client.ts',
    CACHED,
    ['cached answers: a delta of another token is one', '!answersSince(body, since)', 'false'],
    [
      'cached answers: nothing new an hour ago is nothing new',
      'oldness.isOld && (answer',
      'false && (answer',
    ],
    ['cached answers: what leads on is refused', '(answer.toSnapshot ?? since) === since', 'true'],
    ['cached answers: no cache may keep anything', 'ageSeconds > mostSeconds', 'ageSeconds > 0'],
  ),
  ...faultsOf('src/partner/transport.ts', CACHED, [
    'cached answers: the age of the nearer cache counts',
    'Math.max(...seconds.map(Number))',
    'Number(seconds[0])',
  ]),
  ...faultsOf(
    'src/partner/delta-answer.ts',
    CACHED,
    [
      'cached answers: the time of a build is another token',
      '|| (DATE_TIME.test(named) && !DATE_TIME.test(since))',
      '',
    ],
    ['cached answers: a number is another token', 'String(named) === since ||', ''],
  ),
  ...faultsOf(
    'src/status/progress.ts',
    ['test/status/refuted.test.ts'],
    [
      'health: a delta that is behind is late as well',
      'return age > targets.deltaLateAfterSeconds ||',
      'return true ||',
    ],
    ['health: a delta that is behind is never late', 'age > targets.deltaLateAfterSeconds || age', 'age'],
    ['health: a delta that is behind is read at any time to come', '|| age < -AHEAD_SECONDS', ''],
    ['health: nobody hears of a delta that is behind', '...held([behind(facts) || ', '...held(['],
    [
      'health: nobody hears of a delta that stands still',
      'behind(facts) || standsStill(facts),',
      'behind(facts),',
    ],
    [
      'health: nobody hears of a snapshot that differs',
      'standsStill(facts), differs(facts),',
      'standsStill(facts),',
    ],
  ),
  ...faultsOf(
    'src/status/pause.ts',
    ['test/status/refuted.test.ts'],
    ['health: a pause shows a delta that is behind', "  'delta-behind',\n", ''],
    ['health: a pause shows a snapshot that differs', "  'catalog-differs',\n", ''],
  ),
  ...faultsOf(
    'drizzle/0049_catalog_checked.sql',
    CHECKS,
    [
      'delta_is_late: a delta that is behind is in time',
      "s.delta_doubt IS NOT DISTINCT FROM 'behind' OR ",
      '',
    ],
    ['delta_is_late: a snapshot that differs is reported', 's.catalog_differs_at IS NOT NULL OR ', ''],
  ),
  ...faultsOf(
    'src/partner/client.ts',
    CACHED,
    ['cached: prices that a cache has kept are fresh', 'ageSeconds > BULK_KEPT_SECONDS', 'ageSeconds < 0'],
    ['cached: an answer on its way is one of a cache', 'BULK_KEPT_SECONDS = 60;', 'BULK_KEPT_SECONDS = 0;'],
  ),
  ...faultsOf('src/partner/transport.ts', CACHED, [
    'cached: the partner has the time of when a cache got its answer',
    'sent + keptSeconds * 1000',
    'sent',
  ]),
];
