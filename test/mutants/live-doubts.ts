import { faultsOf, type Mutant } from './mutant.ts';

const DECIDED = ['test/sync/live-doubt.test.ts'];
const HANGING = ['test/sync/live-hangs.pg.test.ts', 'test/sync/live-outage.pg.test.ts'];

/**
 * Faults that make calls fail for live SKUs although others could be answered, or mistake other failures for this.
 */
export const LIVE_DOUBTS: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/reprice/live-doubt.ts',
    DECIDED,
    ['live doubt: calls that were under way together are several', 'sentAt >= before.endedAt && (', '('],
    [
      'live doubt: one that is answered leaves it',
      'return { ...NO_DOUBT, othersAt, disprovedAt };',
      'return before;',
    ],
    [
      'live doubt: one that was disproved comes back at once',
      'endedAt - before.disprovedAt < AGAIN_MS',
      'false',
    ],
    [
      'live doubt: one that was disproved is so for ever',
      'const AGAIN_MS = 3_600_000;',
      'const AGAIN_MS = Infinity;',
    ],
    ['live doubt: a SKU that is tried twice is two', ' && alone !== before.tried', ''],
    ['live doubt: any failure is of a try', ' && alone !== null && alone', ' && alone'],
    ['live doubt: others that fail show that they work', ': -Infinity };', ': before.othersAt };'],
    ['live doubt: others need not work before the last try', '+ TRIED && othersWork(doubt);', '+ TRIED;'],
    [
      'live doubt: others need not work between the tries',
      '!== before.tried && othersWork(before);',
      '!== before.tried;',
    ],
    [
      'live doubt: a SKU is blamed where no live one was ever computed',
      'return computedAt === null || computedAt <=',
      'return (computedAt ?? Infinity) <=',
    ],
    ['live doubt: no live SKU is blamed any more', 'computedAt <= now - waitedMs', 'computedAt <= now'],
    ['live doubt: other SKUs wait for a live one to be computed', 'if (!live || ', 'if ('],
    ['live doubt: a 400 is taken for it', ' || !mayBeOfLive(kind)', ''],
    ['live doubt: a body key is taken for it', "kind !== 'no-skus-read' && ", ''],
  ),
  ...faultsOf(
    'src/sync/reprice/reconciliation.ts',
    ['test/sync/retries.test.ts'],
    [
      'reconciliation: who is refused waits four hours as soon as it is blamed',
      'failures + 1 - blamedFrom(skuAnswer.failure)',
      'failures',
    ],
    ['reconciliation: who is refused once is blamed', 'refuses(failure) ? 3 : 1', 'refuses(failure) ? 1 : 1'],
    [
      'reconciliation: a live SKU in errors waits six hours, whatever its target',
      "!('failure' in skuAnswer) ? liveMs : Infinity",
      "!('failure' in skuAnswer) ? Infinity : Infinity",
    ],
    [
      'reconciliation: live SKUs in errors take refreshes from others',
      'live && liveSuffices && !',
      'live && !',
    ],
    [
      'reconciliation: a live SKU that fails alone costs a call at each of its turns',
      "liveSuffices && !('failure' in skuAnswer) ?",
      'liveSuffices ?',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/plan-call.ts',
    DECIDED,
    ['live doubt: calls have live SKUs as ever', '(doubt === null && !isOut(plan))', '!isOut(plan)'],
    [
      'live doubt: SKUs of failed calls share the turns of tries',
      '{ ...turns, triedLast: true }',
      '{ ...turns, triedLast: true, suspectsLast: true }',
    ],
    [
      'live doubt: SKUs of failed calls have every turn',
      'suspectsLast: wanted.suspects !== undefined }',
      'suspectsLast: false }',
    ],
    ['live doubt: several are tried together', 'credit.skus >= 1 && !loneUnderWay;', 'credit.skus >= 1;'],
    ['live doubt: tries take every call', 'mayTry && pause.failures === 0 && turns.triedLast', 'false'],
    ['live doubt: is tried by the first call after a back-off', 'isLiveTurn && !halfOpen ?', 'isLiveTurn ?'],
    [
      'live doubt: others that fail keep live SKUs waiting',
      '(pause.failures > DOUBTED && pause.failures % 2 === 1)',
      'false',
    ],
    [
      'live doubt: what is tried has others with it',
      "if (carries === 'lone') return planTry(inputs, early);",
      '',
    ],
    [
      'live doubt: with live SKUs alone due there is no wait',
      "return { kind: 'idle', nextInMs: LONE_POLL_MS };",
      'return withoutCall(inputs, credit, nextDueMs);',
    ],
    [
      'live doubt: suspects that are live do not await their turn',
      '[...due, ...suspects].some(',
      'due.some(',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/failed-call.ts',
    HANGING,
    ['live doubt: no outage follows', "isAway ? 'begins' : null", 'null'],
    ['live doubt: what another daemon doubts is blamed', '!mayFailForSource(alone,', '!Array.isArray(alone,'],
    ['live doubt: a SKU is blamed as soon as its own call fails', 'hadFailed && alone', 'alone'],
    [
      'live doubt: the try in an outage is blamed, and makes calls smaller',
      'planned.lone && isOut(planned.plan) &&',
      'false &&',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/reprice.ts',
    HANGING,
    [
      'live doubt: a try that finds its SKUs locked keeps its turn',
      '    ctx.recent.noteTurn(prepared.planned);\n',
      '',
    ],
    ['live doubt: is not planned by', '...recent.liveDoubt,', ''],
    [
      'live doubt: a live SKU in errors waits six hours, whatever its target',
      'plan.refreshThreshold === null && !plan.unsolved &&',
      'false &&',
    ],
    [
      'live doubt: a live SKU in errors takes turns from others before it is known what suffices',
      'plan.refreshThreshold === null && !plan.unsolved &&',
      'plan.refreshThreshold === null &&',
    ],
    ['live doubt: answers say nothing', 'if (showsSource(claim, reconciliation))', 'if (false)'],
  ),
  ...faultsOf(
    'src/store/ledger/claim.ts',
    HANGING,
    [
      'live doubt: the same SKUs are tried each time',
      'each order by random() limit 1',
      'each order by (select o.due_at from catalog_internal.due o where o.ctid = each.ctid) limit 1',
    ],
    [
      'live doubt: promised SKUs are planned for tries, and never claimed',
      "where ${claimable(sql, 'd')} and d.live and d.promised_by is not null and ${promisedNow(sql, sql`true`)}",
      'where false',
    ],
    [
      'live doubt: SKUs of failed calls are tried only once none else is due',
      'where held_until is null and largest_call is not null and live and due_at <= now()',
      'where false',
    ],
  ),
  ...faultsOf(
    'src/store/live/limits.ts',
    HANGING,
    [
      'live doubt: what an outage made fail is blamed at the next failure',
      "failures = case when last_error = 'call-not-stored' then failures else 0 end",
      'failures = failures',
    ],
    [
      'live doubt: who was blamed before an outage was known waits on at its end',
      'd set held_until = null, failures',
      'd set claim = null, failures',
    ],
    [
      'live doubt: all that waits is asked for at the end of an outage',
      'and live and largest_call is not null and exists (select from before)',
      'and exists (select from before)',
    ],
  ),
];
