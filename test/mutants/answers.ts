import { faultsOf, type Mutant } from './mutant.ts';
import { APPLIED } from './settled.ts';

const ANSWERS = [
  'test/store/ledger-corners.pg.test.ts',
  'test/store/answer-corners.pg.test.ts',
  'test/store/answers.pg.test.ts',
  'test/store/answers-guards.pg.test.ts',
  'test/store/answers-model.pg.test.ts',
];
const CHANGES = ['test/store/changes.pg.test.ts', 'test/store/changes-model.pg.test.ts'];

/** Faults in how a bulk answer is applied: states, prices, metadata, their histories. */
export const ANSWER_SQL: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/apply.ts',
    APPLIED,
    [
      'answer: what is not applied is settled',
      'settleAnswered(tx, { claim, at }, effects, settling)',
      "settleAnswered(tx, { claim, at }, { ...effects, answered: results.filter(({ kind }) => kind === 'record') }, settling)",
    ],
    ['answer: what is not applied stays claimed', '    returnOvertaken(tx, claim, overtaken),\n', ''],
  ),
  ...faultsOf(
    'src/store/answer/apply.ts',
    ['test/store/doubts.pg.test.ts'],
    [
      'answer: prices are written before what they are judged by',
      'const { answered, overtaken, prices, ahead, findings, drawn, boosted } = effects;',
      'const { answered, overtaken, ahead, findings, drawn, boosted } = effects;\n' +
        '  const prices: typeof effects.prices = [];\n  void writePrices(tx, effects.prices, at);',
    ],
  ),
  ...faultsOf(
    'src/store/answer/lock.ts',
    APPLIED,
    [
      'answer: latency is told of reports that came after the request',
      "and date_trunc('milliseconds', s.reported_at) <= ${claim.askedAt}\n    then",
      'then',
    ],
    [
      'answer: one from before a removal brings the SKU back',
      "s.state <> 'removed' or d.generation = a.generation as answerable",
      'true as answerable',
    ],
    ['answer: to a claim that has run out counts', "where ${heldBy(tx, claim, 'd')}", 'where true'],
  ),
  ...faultsOf(
    'src/store/answer/differences.ts',
    [...ANSWERS.slice(0, 2), ...CHANGES, ...ANSWERS.slice(2)],
    ['differences: the record after it is taken', 'rows[position - 1]', 'rows[position]'],
    [
      'differences: metadata that is new is not seen',
      'where p.sku is null or p.product <> m.product ${differs}',
      'where p.sku is null ${differs}',
    ],
    [
      'differences: a column that changes is not seen',
      'or p.product <> m.product ${differs}',
      'or p.product <> m.product',
    ],
    ['differences: a change is told twice', 'told.get(name) !== to', 'to !== name'],
    ['differences: a number that a column has as text is text for a copy', ' || told.get(name) !== to', ''],
  ),
  ...faultsOf(
    'src/store/answer/writes.ts',
    [...ANSWERS.slice(0, 2), ...CHANGES, ...ANSWERS.slice(2)],
    [
      'prices: all sizes of a SKU go with one',
      "where how = 'gone' and p.sku = diff.sku and p.size = diff.size",
      "where how = 'gone' and p.sku = diff.sku",
    ],
    [
      'prices: an entry that changes is a move',
      "case when how = 'moved' then ${at}::timestamptz else p.changed_at end",
      '${at}::timestamptz',
    ],
    [
      'prices: an entry that changes is not stored',
      "where how in ('moved', 'entry') and",
      "where how = 'moved' and",
    ],
    [
      'metadata: is not seen again',
      'tx`update catalog.products set refreshed_at = ${at} where sku = any(${same})`',
      'tx`select ${at}::timestamptz, ${same}::text[]`',
    ],
    [
      'metadata: a change keeps its old time',
      'then excluded.changed_at else p.changed_at end ${renewals}',
      'then p.changed_at else p.changed_at end ${renewals}',
    ],
  ),
  ...faultsOf(
    'src/store/answer/effects.ts',
    ['test/store/answer-effects.test.ts', ...ANSWERS],
    [
      'answer: a listed SKU that never had a price waits for days after a first 0009',
      "if (state === 'priced' || state === 'pending') return 0;",
      "if (state === 'priced') return 0;",
    ],
    [
      'answer: a listed SKU that never had a price is asked for each hour',
      'minutes !== null ? 2 * minutes : null',
      'minutes !== null ? 0 : null',
    ],
    [
      'answer: a SKU that is told of and still 0009 waits for as long as it has had no price',
      'const untold = told ? 0 : reportedMinutes;',
      'const untold = null;',
    ],
    [
      'answer: a SKU that was told of and is still 0009 waits for days after the second time',
      'const untold = told ? 0 : reportedMinutes;',
      'const untold = told ? 0 : null;',
    ],
    [
      'answer: a SKU that was told of is asked for each hour, for ever',
      'const untold = told ? 0 : reportedMinutes;',
      'const untold = told || reportedMinutes !== null ? 0 : null;',
    ],
    ['answer: a SKU that is back from being removed waits for days', '(unpriced ?? untold)', 'unpriced'],
    ['history: first prices are moves', '&& rowOf.get(sku)?.seenBefore === true', '&& rowOf.has(sku)'],
    [
      'history: what an overtaken answer says',
      'locked.filter(({ answerable }) => answerable).map',
      'locked.map',
    ],
    ['history: an entry that changes is a move', 'oldPrice !== newPrice && rowOf', 'rowOf'],
    ['live rates: learned from an overtaken answer', "'unlisted') && answerable)", "'unlisted'))"],
  ),
  ...faultsOf(
    'src/store/history/changes.ts',
    CHANGES,
    [
      'history: a size type known for the first time corrects',
      'field === MEANING && oldValue !== null ? [sku] : []',
      'field === MEANING ? [sku] : []',
    ],
    [
      'history: prices of a corrected size type are market moves',
      'sku = any(${corrected}::text[])\n',
      'false and sku = any(${corrected}::text[])\n',
    ],
    ['history: nobody is told', '    tx`select catalog_internal.notify_changes()`,\n  ]);', '  ]);'],
    [
      'feed: SKUs of one answer all get the state of the first',
      '({ oldState, newState }) => `${oldState} ${newState}`',
      '() => ""',
    ],
  ),
  ...faultsOf(
    'src/store/answer/differences.ts',
    [
      'test/store/answers.pg.test.ts',
      'test/store/answers-guards.pg.test.ts',
      'test/store/changes-model.pg.test.ts',
    ],
    [
      'answer: a removed SKU that is not found becomes not_found',
      "oldState === 'removed' ? 'removed' : 'not_found'",
      "'not_found'",
    ],
    [
      'feed: first prices are none of it',
      'before.get(sku)?.seenBefore === false',
      'before.get(sku) === null',
    ],
    [
      'feed: first prices of a SKU that is back come twice',
      'before.get(sku)?.seenBefore === false',
      "before.get(sku)?.state !== 'priced'",
    ],
    ['feed: metadata is told again', 'isUnknown.has(sku)', 'before.has(sku)'],
    [
      'feed: the product object is none of it',
      "[...METADATA_COLUMNS, 'product'] as const",
      '[...METADATA_COLUMNS]',
    ],
  ),
  ...faultsOf(
    'src/follow/batch.ts',
    ['test/follow/batch.test.ts'],
    [
      'follow: a batch of the first copy is as large as its page after a restart',
      '!isCopy && endAt',
      'endAt',
    ],
    [
      'follow: a batch has one change more than it may',
      'lines.length >= limits.changes',
      'lines.length > limits.changes',
    ],
    [
      'follow: what did not pass the filter is read again',
      'to: isEnd ? page.readTo : last.position',
      'to: last.position',
    ],
    [
      'follow: a batch that was sent is another after a restart',
      'isFull : change.position > resumed',
      'isFull : isFull',
    ],
  ),
  ...faultsOf(
    'src/store/answer/members.ts',
    ['test/store/changes-model.pg.test.ts'],
    [
      'feed: a member that goes is told like its object',
      '    let at = root;\n',
      '    if (value === undefined) continue;\n    let at = root;\n',
    ],
  ),
  ...faultsOf(
    'src/store/answer/plausibility.ts',
    ['test/store/plausibility.test.ts'],
    ['doubts: a jump is none', 'const JUMP = 3;', 'const JUMP = 30;'],
    ['doubts: a new size of two may cost anything', '(now.size < FEW ? before : now)', '(now)'],
    [
      'doubts: a second answer with a size as before says other numbers',
      '(old === undefined || isFrom(price, old))',
      'true',
    ],
    [
      'doubts: half of what is usual is odd',
      'profile.far, TIMES_USUAL * usual',
      'profile.far, usual / TIMES_USUAL',
    ],
  ),
  ...faultsOf(
    'src/store/answer/doubts.ts',
    ['test/store/plausibility.test.ts', 'test/store/doubts.pg.test.ts'],
    [
      'doubts: a wrong clock doubts for as long as it was ahead',
      'held.minutes < 0',
      'held.minutes === Infinity',
    ],
    ['doubts: a second answer may say other numbers', 'held.minutes < 0 || isAnother', 'held.minutes < 0'],
    ["doubts: another account's prices are believed", 'isOurs ? held : new Map()', 'held'],
    [
      'doubts: what was before is forgotten with other odd prices',
      '[...settled, ...held.believed]',
      '[...settled, ...before]',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-move.ts',
    ['test/store/plausibility.test.ts', 'test/store/doubts.pg.test.ts'],
    ['doubts: the second answer may come at once', 'APART_MINUTES = 5', 'APART_MINUTES = 0'],
  ),
  ...faultsOf(
    'src/store/answer/members.ts',
    ['test/store/members-drawn.test.ts'],
    [
      'members: a SKU that is gone is followed for ever',
      'this.#now() - oldest.at > FOLLOWED_MS',
      'oldest.at < 0',
    ],
    ['members: there is no end of SKUs that are followed', 'if (!this.#hasRoom()) return false;', ''],
  ),
  ...faultsOf(
    'src/store/answer/members.ts',
    ['test/store/volatile-members.pg.test.ts'],
    ['members: none is ever muted', 'if (!isMuted && again >=', 'if (isMuted && again >='],
    ['members: what is muted stays so', 'rest > HEARD_AT * again', 'rest > Infinity * (again + 1)'],
    ['members: one move mutes', 'const MUTED_FROM = 24;', 'const MUTED_FROM = 1;'],
    ['members: what rests is not noticed', 'else count.rest += 1;', ''],
    [
      'members: the first move of a SKU counts',
      'for (const key of before ?? []) {',
      'for (const key of before ?? keys) {',
    ],
    ['members: one name deep', 'const DEEPEST = 4;', 'const DEEPEST = 1;'],
    [
      'members: what was muted before a restart, and rests, is muted for ever',
      'where ${tx.unsafe(HOLDS)}`;',
      '`;',
    ],
    [
      'members: that one goes on to move is not stored',
      'const held = [...muted, ...renewed];',
      'const held = muted;',
    ],
    [
      'members: that one goes on to move changes nothing',
      'on conflict (part, path) do update set since = excluded.since`',
      'on conflict do nothing`',
    ],
  ),
  ...faultsOf(
    'src/store/history/retention.ts',
    ['test/store/volatile-members.pg.test.ts'],
    ['members: the history of columns is dropped', "field = 'product'\n", 'true\n'],
    ['members: no history is dropped', 'id <= (select up_to from span) and (', 'id <= 0 and ('],
  ),
];
