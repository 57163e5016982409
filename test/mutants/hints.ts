import { faultsOf, type Mutant } from './mutant.ts';

const LOCKED = ['test/sync/hints-locked.pg.test.ts'];
const BY_MANIFEST = ['test/sync/manifest-hints.pg.test.ts'];

/**
 * Faults in hints: what is learned about sources, what a hint brings forward, and how hints are read. That a SKU
 * due for another reason is not moved cannot be broken in one place: it is read as due now, and nothing is sooner.
 */
export const HINTS: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/live/hints.ts',
    ['test/sync/hints.test.ts'],
    ['hints: a new source is always right', 'const USUAL_PRECISION = 0.3;', 'const USUAL_PRECISION = 0.9;'],
    [
      'hints: a source that knows nothing is believed a little',
      '? 0 : -Math.log1p(-precision)',
      '? 0.1 : -Math.log1p(-precision)',
    ],
    ['hints: a new source may flood', 'const FIRST_WAITING = 50;', 'const FIRST_WAITING = 50_000;'],
    [
      'hints: of a source that knows nothing as many wait',
      'hintHazard(record) > 0 ? WAITING_A_TEST',
      'hintHazard(record) >= 0 ? WAITING_A_TEST',
    ],
    ['hints: a refresh is put off', 'return inMinutes < dueIn ? inMinutes : null;', 'return inMinutes;'],
    [
      'hints: a source has the merit of others',
      'unmoved * Math.exp(hazard - all)',
      'unmoved * Math.exp(-hazard)',
    ],
    ['hints: every move is explained', 'told >= EXPLAINED * (1', 'told >= 0 * (1'],
    ['hints: nothing is forgotten', 'tested > MAX_TESTED ?', 'tested > Infinity ?'],
    ['hints: hints at one SKU add up without end', 'const MAX_HAZARD = 4;', 'const MAX_HAZARD = 400;'],
    ['hints: what is undone costs nothing', 'const COST_OF_UNDONE = 2;', 'const COST_OF_UNDONE = -1;'],
    [
      'hints: asked again before anything can be undone',
      'const AGAIN_MINUTES = 6;',
      'const AGAIN_MINUTES = 0;',
    ],
    ['hints: any further move undoes the one before', 'moved.get(size) === price', 'moved.has(size)'],
    [
      'hints: who says nothing has a SKU asked again',
      'hint.hazard > 0 ? [hint.undone]',
      'hint.hazard >= 0 ? [hint.undone]',
    ],
    ['hints: who says nothing has told of it', 'hazard > 0 ? [source]', 'hazard >= 0 ? [source]'],
  ),
  ...faultsOf(
    'src/store/live/hint-state.ts',
    ['test/store/hint-base.test.ts'],
    ['hints: where there are no others, rates are right', '+ OWN_COUNTS * ofOwn)', '+ OWN_COUNTS)'],
    ['hints: a source is one of the others', 'all.unmoved - own.unmoved', 'all.unmoved'],
    [
      'hints: what others find does not fade',
      'this.#all.expected > MAX_EXPECTED',
      'this.#all.expected > Infinity',
    ],
  ),
  ...faultsOf(
    'src/sync/live/learn-refresh.ts',
    ['test/sync/memories.test.ts', 'test/sync/hints.pg.test.ts'],
    [
      'hints: a hinted move came at some time in the wait',
      'moved && hinted ? learnHintedMove(rate, tau) : learnRate(rate, tau, moved)',
      'learnRate(rate, tau, moved)',
    ],
    [
      'memories: the one that foresees worse is believed',
      'logProbability(ofShort, tau, moved) - logProbability(ofLong, tau, moved)',
      'logProbability(ofLong, tau, moved) - logProbability(ofShort, tau, moved)',
    ],
    [
      'memories: both last for days',
      'short: bounded(withoutPrior(learn(ofShort), prior), SHORT_MINUTES)',
      'short: bounded(withoutPrior(learn(ofShort), prior))',
    ],
    [
      'memories: learned as in a usual market',
      'const [ofLong, ofShort] = [withPrior(long, prior), withPrior(short, prior)];\n  const learn',
      'const [ofLong, ofShort] = [long, short];\n  const learn',
    ],
    ['memories: what they were learned from on is never forgotten', 'prior: together(priorPart)', 'prior: 1'],
    [
      'memories: one may be believed for ever',
      'Math.max(-MAX_ODDS, Math.min(MAX_ODDS, FADING * odds + said))',
      'odds + said',
    ],
    ['memories: a clock that was set back teaches', 'if (tau <= 0) return { long, short, odds };', ''],
  ),
  ...faultsOf(
    'src/store/live/refresh.ts',
    ['test/store/live.pg.test.ts'],
    [
      'memories: what was learned of the hours is forgotten',
      'short_odds = excluded.short_odds,',
      'short_odds = null,',
    ],
    [
      'memories: what they were learned from on comes back with each refresh',
      'long_prior = excluded.long_prior,',
      'long_prior = null,',
    ],
    ['memories: so does what is believed', 'prior_part = excluded.prior_part,', 'prior_part = null,'],
  ),
  ...faultsOf(
    'src/sync/live/learn-refresh.ts',
    ['test/sync/hints.pg.test.ts'],
    [
      'hints: what is undone is a move of its own',
      "predictionTests.some(({ found }) => found === 'undone')",
      'predictionTests.length < 0',
    ],
  ),
  ...faultsOf(
    'src/store/live/hint-state.ts',
    ['test/sync/hints.pg.test.ts'],
    [
      'hints: what has stayed is undone',
      "undone: Number(found === 'undone')",
      "undone: Number(found === 'stayed')",
    ],
  ),
  ...faultsOf(
    'src/store/live/refresh.ts',
    ['test/sync/hints.pg.test.ts', 'test/sync/hints-model.pg.test.ts'],
    ['hints: nobody remembers what was told of', 'told = excluded.told`', 'told = null`'],
    [
      'hints: what was told of is remembered for ever',
      ', told = excluded.told`',
      ', told = coalesce(excluded.told, r.told)`',
    ],
  ),
  ...faultsOf(
    'src/store/answer/effects.ts',
    ['test/sync/hints.pg.test.ts'],
    ['hints: what was told of outlives the live price', 'hints || prediction) &&', 'hints) &&'],
  ),
  ...faultsOf(
    'src/store/sellers/hints.ts',
    ['test/sync/hints.pg.test.ts'],
    [
      'hints: one before the request waits for the next',
      'case when t.hinted_at > l.asked_at then t.sku end',
      't.sku',
    ],
    ['hints: what is held back is moved', "(${movable(tx, 'l')} and", "(l.live and l.reason = 'live' and"],
    ['hints: sums do not fade', 'n.tested * f.part,', 'n.tested,'],
    [
      'hints: p_right does not fall',
      'set hint_hazard = (select h.hazard from hinted h where h.sku = r.sku)',
      'set hint_hazard = null',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/take-hints.ts',
    ['test/sync/hints.pg.test.ts'],
    ['hints: sources grow without end', 'length < MAX_SOURCES;', 'length < Infinity;'],
  ),
  ...faultsOf(
    'src/store/sellers/hints.ts',
    LOCKED,
    [
      'hints: the turn is not waited for, and not heeded',
      '? await work(tx) : null',
      '? await work(tx) : await work(tx)',
    ],
    [
      'hints: whoever holds one that waits holds up the answer',
      'any(${skus as string[]}) for update skip locked',
      'any(${skus as string[]}) for update',
    ],
    ['hints: those that a refresh has left behind stay', 'where s.asked_at >= q.hinted_at or ', 'where '],
    [
      'hints: what waits of a forgotten source does not count',
      'full join (select source, count(*)',
      'left join (select source, count(*)',
    ],
  ),
  ...faultsOf('src/store/answer/lock.ts', LOCKED, [
    'hints: a hazard stays where its hints were deleted',
    'coalesce(r.hazard, r.hint_hazard) as hazard',
    'r.hazard as hazard',
  ]),
  ...faultsOf('src/store/answer/apply.ts', LOCKED, [
    'hints: what could not be counted is lost',
    'hints.giveBack(shown)',
    'undefined',
  ]),
  ...faultsOf(
    'drizzle/0025_hints_beside.sql',
    LOCKED,
    [
      'hints: tables that somebody locks are waited for',
      'waiting_hints IN ROW EXCLUSIVE MODE NOWAIT',
      'waiting_hints IN ROW EXCLUSIVE MODE',
    ],
    [
      'hints: sources that somebody locks are waited for',
      'SHARE ROW EXCLUSIVE MODE NOWAIT',
      'SHARE ROW EXCLUSIVE MODE',
    ],
    [
      'hints: rows of sources are waited for',
      'ORDER BY source FOR UPDATE NOWAIT',
      'ORDER BY source FOR UPDATE',
    ],
    [
      'hints: two read at once',
      'hint_sources IN SHARE ROW EXCLUSIVE MODE',
      'hint_sources IN ROW EXCLUSIVE MODE',
    ],
    [
      'hints: those of before a refresh are weighed again',
      'FILTER (WHERE s.asked_at IS NULL OR q.hinted_at > s.asked_at)',
      'FILTER (WHERE true)',
    ],
    [
      'catalog.hint: whoever locks hints is waited for',
      'catalog_internal.hints IN ROW EXCLUSIVE MODE NOWAIT',
      'catalog_internal.hints IN ROW EXCLUSIVE MODE',
    ],
  ),
  ...faultsOf('drizzle/0062_sessions_of_sellers.sql', BY_MANIFEST, [
    'catalog.hint: names of the mirror’s own are taken',
    "'^(manifest|delta)[.]'",
    "'^(manifest)[.]'",
  ]),
  ...faultsOf('src/sync/reprice/take-hints.ts', BY_MANIFEST, [
    'hints: the mirror’s own sources are announced',
    '&& !OWN.has(source)) fresh',
    ') fresh',
  ]),
  ...faultsOf(
    'src/sync/reprice/product-lines.ts',
    ['test/sync/lines.pg.test.ts'],
    [
      'hints: a suspicion that is dismissed takes them away',
      'inMinutes: hinted ?? dueIn',
      'inMinutes: dueIn',
    ],
  ),
  ...faultsOf(
    'src/sync/live/hints.ts',
    ['test/sync/manifest-hints.test.ts'],
    [
      'manifest hints: lines that all say so are believed',
      'const TELLING_PART = 0.5;',
      'const TELLING_PART = 1;',
    ],
    ['manifest hints: those that wait do not count', 'mostWaiting(record) - waiting', 'mostWaiting(record)'],
  ),
  ...faultsOf(
    'src/store/catalog/baseline-sql.ts',
    BY_MANIFEST,
    [
      'manifest hints: an older line hints',
      'is_later and updated_at > asked_at) is true as is_newer',
      'updated_at > asked_at) is true as is_newer',
    ],
    [
      'manifest hints: one before the refresh hints',
      'is_later and updated_at > asked_at) is true as is_newer',
      'is_later) is true as is_newer',
    ],
    [
      'manifest hints: a SKU that crosses is hinted at',
      "m.price_source = 'live' and r.price_source = 'live' as stays_live",
      "r.price_source = 'live' as stays_live",
    ],
    [
      'manifest hints: sizes of an old snapshot hint',
      "coalesce($4::timestamptz, updated_at, 'infinity') > asked_at",
      'true',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/manifest-hints.ts',
    BY_MANIFEST,
    [
      'manifest hints: sizes that the mirror holds hint',
      'where sizes <> (select',
      'where sizes <> -1 or 0 < (select',
    ],
    [
      'manifest hints: in order of SKU',
      'where is_newer\n      order by hashtextextended(sku, $3::bigint)',
      'where is_newer\n      order by sku',
    ],
    ['manifest hints: the queue grows without end', '99999 - coalesce', '999999 - coalesce'],
    ['manifest hints: dated ahead', 'least(at, clock_timestamp())', 'at'],
    [
      'manifest hints: those that are queued do not count',
      'hints h where h.source = n.source)',
      'hints h where false)',
    ],
    ['manifest hints: hinted at twice', 'where h.sku = hintable.sku and', 'where false and'],
    [
      'manifest hints: the number that has just changed comes when it comes',
      'order by has_other_sizes desc, hash',
      'order by hash',
    ],
    ['manifest hints: whoever locks hints is waited for', '[0].free) await', '[0].free !== null) await'],
  ),
  {
    breaks: 'hints: a schedule by rates puts off what a hint had brought forward',
    file: 'src/store/live/order.ts',
    from: 'case when r.hazard > 0 or r.hint_hazard > 0 then d.due_at end',
    to: 'case when r.hazard > 0 then d.due_at end',
    tests: ['test/store/live-order.pg.test.ts'],
  },
];
