import { faultsOf, type Mutant } from './mutant.ts';

const MIGRATION = 'drizzle/0050_believing.sql';

/** Faults in what is believed of an answer: which SKUs it is about, and whether it is asked for again. */
export const BELIEVING: readonly Mutant[] = [
  ...faultsOf(
    'src/store/catalog/delta-reports.ts',
    ['test/store/delta.pg.test.ts'],
    [
      'delta: the first report that a SKU went live makes nothing due',
      "coalesce(r.is_live and s.price_source = 'live' and",
      'coalesce(r.is_live and',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/delta-reports.ts',
    ['test/store/delta.pg.test.ts'],
    [
      'delta: each report that a SKU is still live makes it due',
      'from before where not still_live group by unpriced, is_live',
      'from before group by unpriced, is_live',
    ],
    [
      'delta: a report that a SKU is still live counts as one that waits for an answer',
      'select sku, price_source, true, now() from before where not still_live order by sku',
      'select sku, price_source, true, now() from before order by sku',
    ],
    [
      'delta: a live SKU that is listed again is not asked',
      "s.price_source = 'live' and s.in_manifest and s.state in ('priced', 'pending'), false)",
      "s.price_source = 'live' and s.state in ('priced', 'pending'), false)",
    ],
    [
      'delta: a live SKU that is reported although it is not found is not asked',
      "and s.in_manifest and s.state in ('priced', 'pending'), false)",
      'and s.in_manifest, false)',
    ],
  ),
  ...faultsOf(
    'src/store/answer/doubts.ts',
    ['test/store/lost-prices.pg.test.ts'],
    ['lost prices: none is looked for again', 'const odd = oddity ?? loss;', 'const odd = oddity;'],
    [
      'lost prices: what has vanished before is lost with each answer',
      'losses === undefined || isGone ? null',
      'losses === undefined ? null',
    ],
    [
      'lost prices: a report that comes meanwhile decides nothing',
      "if (isLoss(held.oddity) && losses === 'told') return { kind: 'ends', back: false };\n",
      '',
    ],
    [
      'lost prices: the second answer decides nothing',
      'if (held !== null && isLoss(held.oddity) && now.size === 0) return secondAnswer(held, answer, massMove);\n',
      '',
    ],
    [
      'lost prices: what is there again is looked for again',
      "if (isLoss(oddity) && lossOf(believed, now, 'all') !== null) return false;\n",
      'if (isLoss(oddity)) return false;\n',
    ],
  ),
  ...faultsOf(
    'src/store/answer/judgements.ts',
    ['test/store/lost-prices.pg.test.ts'],
    [
      'lost prices: each is an implausible number for moves in masses',
      "judgement.doubt === 'implausible' && !isLoss(judgement.oddity)",
      "judgement.doubt === 'implausible'",
    ],
    [
      'lost prices: counts twice for moves in masses',
      'before.size === 0 || back || isReturn || isCounted',
      'before.size === 0 || back || isReturn',
    ],
    [
      'lost prices: where a number was doubted before, it is never asked again',
      'return before.size === 0 || isGone ? null : apart * 60_000;',
      'return null;',
    ],
    [
      'lost prices: where a number was doubted before, it is asked again for ever',
      'return before.size === 0 || isGone ? null : apart * 60_000;',
      'return apart * 60_000;',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-move.ts',
    ['test/store/lagging-doubts.pg.test.ts'],
    [
      'doubts: a second answer may be of the same cache while prices lag',
      'pricesLag ? LATE_APART_MINUTES : APART_MINUTES',
      'APART_MINUTES',
    ],
  ),
  ...faultsOf(
    'src/store/answer/judgements.ts',
    ['test/store/lagging-doubts.pg.test.ts'],
    [
      'doubts: a second answer is asked for too early while prices lag',
      'confirmIn(answer, judgement, held, apartMinutes(massMove))',
      'confirmIn(answer, judgement, held, 5)',
    ],
  ),
  ...faultsOf(
    'src/store/answer/plausibility.ts',
    ['test/store/lost-prices.pg.test.ts'],
    [
      'lost prices: single offers of live SKUs that are sold are doubted',
      'return isUnusual && before.size < FEW ? null',
      'return false ? null',
    ],
    ['lost prices: half of the sizes are most', 'lost > 0.5 * before.size', 'lost >= 0.5 * before.size'],
  ),
  ...faultsOf(
    'src/store/answer/effects.ts',
    ['test/store/lost-prices.pg.test.ts'],
    [
      'lost prices: a withdrawal that was reported is doubted',
      "  if (told === true && !live) return 'told';\n",
      '',
    ],
    [
      'lost prices: a first record without any size is believed',
      'row === undefined || row.seenBefore ? null : row.listedSizes',
      'null',
    ],
  ),
  ...faultsOf(
    'src/store/answer/doubts.ts',
    ['test/store/lost-prices.pg.test.ts'],
    [
      'lost prices: a first record without a price for any of its sizes is believed',
      "result.kind === 'record' && now.size === 0",
      "result.kind === 'record' && prices.length === 0",
    ],
    [
      'lost prices: a first record without a size is doubted, though the manifest counts none',
      '(sizesToCome ?? 0) > 0,',
      '(sizesToCome ?? 1) >= 0,',
    ],
  ),
  ...faultsOf('src/store/answer/mass-moves.ts', ['test/store/lost-prices.pg.test.ts']),
  ...faultsOf(
    MIGRATION,
    ['test/store/lost-prices.pg.test.ts', 'test/store/due.pg.test.ts', 'test/store/doubts.pg.test.ts'],
    [
      'mark_due: a SKU that fails alone is tried at once',
      'AND d.due_at > now()) AND d.largest_call IS NULL THEN NULL',
      'AND d.due_at > now()) THEN NULL',
    ],
    [
      'mark_due: a report waits for what a second answer waits for',
      "(d.failures > 0 OR d.doubt IS NOT NULL OR d.reason = 'doubted' OR",
      '(d.failures > 0 OR',
    ],
    [
      'doubts: a SKU that waits to be asked again counts as due',
      "d.failures = 0 AND (d.doubt IS NOT NULL OR d.reason = 'doubted'))",
      'd.failures = 0 AND d.doubt IS NOT NULL)',
    ],
    [
      'lost prices: a mark has them wait for the second answer',
      "OR d.doubt IS NOT NULL OR d.reason = 'doubted' OR d.reason",
      'OR d.reason',
    ],
  ),
  ...faultsOf(
    'src/store/answer/seller-doubts.ts',
    ['test/store/lost-prices.pg.test.ts'],
    ['lost prices: are not counted among the doubted', "oddity in ('no-prices', 'few-sizes')", 'false'],
  ),
  ...faultsOf(
    'src/sync/reprice/reconciliation.ts',
    ['test/sync/reconciliation.test.ts', 'test/sync/passed-over.pg.test.ts'],
    [
      'short answers: SKUs that are passed over have calls cut',
      '    order.slice(read).every((sku) => isOmitted(skuAnswers.get(sku))) &&\n',
      '',
    ],
    [
      'short answers: what may be chance has calls cut',
      'chanceToBeLast(order.length, omitted.length) <= LAST_BY_CHANCE &&',
      'true &&',
    ],
    [
      'short answers: SKUs that are always passed over have calls cut',
      '!omitted.every((sku) => setBack.has(sku))',
      'true',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/recent.ts',
    ['test/sync/short-answers.test.ts', 'test/sync/passed-over.pg.test.ts'],
    [
      'short answers: a part of each call is taken for a number',
      'return answers >= SHORT_ANSWERS && differ;',
      'return answers >= SHORT_ANSWERS;',
    ],
    [
      'short answers: a larger call that is read whole shows nothing',
      'return asked > run.read ? NO_SHORT : run;',
      'return run;',
    ],
    [
      'short answers: a SKU that is passed over alone stops all calls',
      '(this.#works && asked.every(({ setBack = false }) => setBack)) ||',
      'false ||',
    ],
    [
      'short answers: a body key that is not read is blamed on one SKU after the other',
      "this.#names = asked.some((each) => answerFor(each, answers).kind !== 'error');",
      'this.#names = true;',
    ],
    [
      'short answers: calls of which nothing is read end whenever SKUs that have failed come together',
      'this.#works &&= arePassedOver;',
      '',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/partner-faults.ts',
    ['test/sync/live-outage.pg.test.ts'],
    ['live outage: is none for errors of live SKUs alone', "change: fails ? 'begins' : null", 'change: null'],
    ['live outage: is told where all others are in errors, too', '&& !areGeneral(others)', ''],
    ['live outage: ends by nothing', "change: isOver ? 'ends' : null", 'change: null'],
    [
      'live outage: each try ends it',
      'const isOver = works || (kinds.length',
      'const isOver = true || (kinds.length',
    ],
    ['live outage: the schedule is not planned again', "  await requestTask(sql, 'live-plan');\n", ''],
  ),
  ...faultsOf(
    'src/sync/live/ceiling.ts',
    ['test/sync/live-outage.pg.test.ts'],
    [
      'live outage: live SKUs are asked for as ever',
      'const blockedAt = outageSince ?? (',
      'const blockedAt = (',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/plan-call.ts',
    ['test/sync/live-outage.pg.test.ts'],
    [
      'live outage: live SKUs that are due have calls go that cannot carry them',
      "carries === 'all' && !(isOut(plan) && credit.skus < 1)",
      'true',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/reconciliation.ts',
    ['test/sync/live-outage.pg.test.ts'],
    ['live outage: live SKUs back off one by one', 'if (liveFails && asked.live) {', 'if (false) {'],
  ),
  ...faultsOf(
    'src/store/answer/writes.ts',
    ['test/sync/live-outage.pg.test.ts'],
    [
      'live outage: is counted against each SKU',
      "case when h.deferred or h.blame = 'class' then d.failures",
      'case when h.deferred then d.failures',
    ],
    ['live outage: SKUs lose their lane', "h.blame in ('general', 'class')", "h.blame in ('general')"],
  ),
  ...faultsOf(
    'src/store/live/limits.ts',
    ['test/sync/live-outage.pg.test.ts'],
    [
      'live outage: the SKUs by which it was found are to blame',
      'update catalog_internal.due d set failures = 0, held_until = null,',
      'update catalog_internal.due d set',
    ],
    [
      'live outage: goes on for ever without a SKU to try it',
      "> clock_timestamp() - interval '1 hour')",
      "> '-infinity')",
    ],
  ),
  ...faultsOf(
    'src/status/health.ts',
    ['test/status/live-outage.test.ts'],
    ['live outage: is not said', '      liveOutage(facts),\n', ''],
  ),
];
