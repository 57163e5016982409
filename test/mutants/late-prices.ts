import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in detecting prices that the partner answers later than it reports them. */
export const LATE_PRICES: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/second-looks.ts',
    ['test/store/second-looks.test.ts'],
    [
      'second looks: the first record of a SKU is believed',
      "return told && listedSnapshot && standing !== 'overtaken' ? 'report' : 'none';",
      "return 'none';",
    ],
    [
      'second looks: a first load asks everything twice',
      'return told && listedSnapshot && standing',
      'return listedSnapshot && standing',
    ],
    [
      'second looks: the prices of before are a change where the SKU was gone',
      "kept !== null : said.state !== 'pending';",
      'kept !== null : false;',
    ],
    ['second looks: a new SKU with prices is asked twice', "said.state !== 'pending';", 'true;'],
    [
      'second looks: a first record without a price is one of a part that is drawn',
      '|| (said.isUnpriced && mayPrecede(row, said));',
      ';',
    ],
    [
      'second looks: so is one without a price whose first record was overtaken by its report',
      "!comparable || (kept === 'reported' && isUnpriced && !moved);",
      '!comparable;',
    ],
    [
      'second looks: those of new SKUs show that no answer is late',
      "if (look === 'report' && isAskedAgain && mayPrecede(row, said)) return 'overtaken';",
      '',
    ],
    [
      'second looks: an early answer of a new SKU has its second one show that no answer is late',
      "look === 'early' && row.kept === 'reported' && finding === 'left' ? null : finding;",
      'finding;',
    ],
    [
      'second looks: a new SKU that has none keeps its report unjudged',
      "look === 'report' && isAskedAgain && mayPrecede",
      "look === 'report' && mayPrecede",
    ],
    [
      'second looks: none where a refresh had found the move before its report',
      '!said.moved || kept !== null',
      '!said.moved',
    ],
    ['second looks: a wrong clock puts one off', ' && againInSeconds <= LONGEST_CACHED_SECONDS', ''],
    ['second looks: a move that only the mirror has seen gets one', "told && standing !== 'own'", 'told'],
    [
      'second looks: an early answer stands for it',
      "return isEarly ? 'early' : 'second';",
      "return 'second';",
    ],
    [
      'second looks: an early answer stands for it where it finds a change',
      "return isEarly ? 'early' : 'second';",
      "return isEarly && !moved ? 'early' : 'second';",
    ],
    [
      'second looks: a report that comes during an early answer ends the wait of one before',
      "return isEarly ? 'early' : 'none';",
      "return 'none';",
    ],
    [
      'second looks: a change counts before it is known whether it was reported',
      "return look === 'second' && !moved && standing === 'own' && kept === null ? false : null;",
      "return look === 'second' && standing === 'own' && kept === null ? moved : null;",
    ],
    [
      'second looks: a change counts that its next report may explain',
      "if (isOpen(row) && row.kept === 'overdue' && !moved)",
      'if (isOpen(row) && !moved)',
    ],
    [
      'second looks: a change counts behind which another may hide',
      "return row.keptOnce ? 'late' : 'none';",
      "return 'late';",
    ],
    [
      'second looks: any change without a report counts',
      "  (againInSeconds !== null || askedBecause === 'again');",
      '  true;',
    ],
    [
      'second looks: their changes count as never reported',
      "if (look === 'late' || isDropped) return 'left';",
      '',
    ],
    [
      'second looks: the late answer to an earlier report ends it',
      'waits || (mayBeOfBefore && isDrawn)',
      'mayBeOfBefore && isDrawn',
    ],
  ),
  ...faultsOf(
    'src/store/trust/late-prices.ts',
    ['test/store/second-looks.test.ts'],
    [
      'second looks: one of the sampled that finds a change changes nothing',
      'held.share < 1 && found > 0 ? false : ',
      '',
    ],
    ['second looks: chance has all of them go on', 'found <= looks * HARDLY_ANY', 'found <= 0'],
  ),
  ...faultsOf(
    'src/store/answer/writes.ts',
    ['test/store/second-looks.pg.test.ts'],
    [
      'second looks: the sweep waits for one',
      '${next.snapshotReason}::text\n',
      '${next.snapshotReason}::text where a.again_seconds is null\n',
    ],
    [
      "second looks: are taken for the sweep's",
      "secs => a.again_seconds), 'again' where",
      "secs => a.again_seconds), 'sweep' where",
    ],
  ),
  ...faultsOf(
    'src/store/answer/lock.ts',
    ['test/store/second-looks.pg.test.ts'],
    [
      'second looks: nobody knows which change one has found',
      'd.asked_because as "askedBecause"',
      'null as "askedBecause"',
    ],
  ),
  ...faultsOf(
    'src/store/trust/calibration.ts',
    ['test/store/calibration.pg.test.ts', 'test/store/second-looks.pg.test.ts'],
    [
      'second looks: what only settles one is shown as a look',
      'counts.filter(({ looks }) => looks > 0)',
      'counts',
    ],
  ),
  ...faultsOf(
    'src/store/setup/account.ts',
    ['test/store/second-looks.pg.test.ts'],
    [
      'second looks: another account waits for one',
      'believed = null, again_at = null, missed_moves = null,',
      'believed = null, missed_moves = null,',
    ],
  ),
  ...faultsOf(
    'drizzle/0054_second_looks.sql',
    ['test/store/second-looks.pg.test.ts'],
    [
      'second looks: a price is stale while one is due',
      "d.reason NOT IN ('metadata', 'again')",
      "d.reason <> 'metadata'",
    ],
  ),
  ...faultsOf(
    'src/store/trust/late-prices.ts',
    ['test/store/second-looks.test.ts'],
    ['late prices: end as soon as they began', 'part > LAGGING_PART / 2', 'part > LAGGING_PART'],
    ['late prices: one by chance is enough', ' && known.found >= LAGGING_FOUND - 1e-6', ''],
  ),
  ...faultsOf(
    'drizzle/0054_second_looks.sql',
    ['test/store/second-looks.pg.test.ts', 'test/store/p-right.pg.test.ts'],
    [
      'late prices: an answer without the change is believed at once',
      'WHEN reported IS NULL THEN greatest(held.late_moves, held.waiting_moves) ',
      '',
    ],
    ['late prices: nothing is learned of them', '  held.late_moves := b.late_moves;\n', ''],
  ),
  ...faultsOf(
    'src/status/health.ts',
    ['test/status/prices-lag.test.ts'],
    ['late prices: are not said', '  ...lateReasons(facts),\n', ''],
  ),
  ...faultsOf(
    'src/store/trust/beliefs.ts',
    ['test/store/second-looks.pg.test.ts'],
    ['late prices: their end is told again and again', 'if (lags === lagged) return null;', ''],
  ),
];
