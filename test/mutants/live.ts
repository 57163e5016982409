import { faultsOf, type Mutant } from './mutant.ts';

const CEILING = [
  'test/sync/live-ceiling.test.ts',
  'test/sync/live-ceiling-model.test.ts',
  'test/sync/learn.test.ts',
];

/** Faults in what bulk calls teach about live SKUs: budget and ceiling. */
export const LIVE: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/live/learn.ts',
    ['test/sync/live-budget.test.ts', 'test/sync/learn.test.ts'],
    ['live budget: deferrals of others lower it', 'if (seen.deferredOthers > 0) return budget;', ''],
    [
      'live budget: a call with fewer raises it',
      'if (seen.askedLive < Math.floor(budget)) return budget;',
      '',
    ],
    [
      'live budget: sinks to nothing',
      'return Math.max(1, proven, Math.floor(budget) - 1);',
      'return Math.max(0, proven, Math.floor(budget) - 1);',
    ],
    [
      'live budget: falls at once to what was answered',
      'return Math.max(1, proven, Math.floor(budget) - 1);',
      'return Math.max(1, proven);',
    ],
    ['live budget: rises beyond a call', 'return Math.min(limits.most, budget', 'return Math.max(0, budget'],
    [
      'live budget: the known ceiling lowers it',
      'if (plan.ceiling.perMinute !== null && meetsCeiling(call, plan)) return budget;',
      '',
    ],
    ['live calls: one without live SKUs is logged', 'call: showsLive ? call : null,', 'call,'],
    [
      'live calls: unlisted SKUs are evidence of an incident',
      '    snapshotAsked: listed.asked,\n    snapshotDeferred: listed.deferred,',
      '    snapshotAsked: snapshot.asked,\n    snapshotDeferred: snapshot.deferred,',
    ],
  ),
  ...faultsOf(
    'src/sync/live/ceiling.ts',
    CEILING,
    ['ceiling: is spent without caution', 'perMinute * (1 - caution + GROWTH', 'perMinute * (1 + GROWTH'],
    ['ceiling: agreement takes off no caution', 'CAUTION / (1 + alike)', 'CAUTION'],
    ['ceiling: agreement does not slow its growth', '/ (1 + LONGER_FOR_ALIKE * alike);', ';'],
    [
      'ceiling: agreement does not delay its growth',
      'const heldFor = HELD_MINUTES * alike;',
      'const heldFor = 0;',
    ],
    [
      'ceiling: a cycle is compared with what it had grown to',
      'const measuredBefore = perMinute ?? last;',
      'const measuredBefore = last;',
    ],
    [
      'ceiling: a call that deferred others meets it',
      'if (deferred === 0 || snapshotDeferred > 0) return false;',
      'if (deferred === 0) return false;',
    ],
    [
      'ceiling: a part deferred above the budget meets it',
      '|| asked > Math.floor(budget)) return false;',
      ') return false;',
    ],
    [
      'ceiling: a few parts deferred make one',
      'plan.partlyDeferred >= SUSPECTED_CALLS &&',
      'plan.partlyDeferred >= 1 &&',
    ],
    ['ceiling: a trial of the budget meets it', 'return !isTrialOfBudget;', 'return true;'],
    [
      'ceiling: one call makes one',
      'failedAt === null || isChance || Math.abs(askedAt - failedAt) > SUSPECTED_MS',
      'failedAt === Infinity',
    ],
    [
      'ceiling: a few of many calls make one',
      '(plan.lastDeferred >= MAX_OF_LAST || call.alike)',
      '(plan.lastDeferred >= 1 || call.alike)',
    ],
    [
      'ceiling: two SKUs that were deferred by chance make one',
      'const isChance = computed === 0 &&',
      'const isChance = computed > 100 &&',
    ],
    [
      'ceiling: what was lowered for SKUs stays so',
      'return { ...ceiling, ...anew, perMinute: proven };',
      'return ceiling;',
    ],
    [
      'ceiling: a block before the last cycle begins another',
      'return askedAt < before.since ? null',
      'return askedAt < 0 ? null',
    ],
    [
      'ceiling: a call of before the block ends it',
      '(call.askedAt > (failedAt ?? 0) || blockedAt > call.answeredAt)',
      '(call.askedAt > 0 || blockedAt > call.answeredAt)',
    ],
    [
      'ceiling: is never forgotten',
      'liveCeilingAt(before, call.answeredAt) > capacity * BEYOND_CAPACITY',
      'liveCeilingAt(before, call.answeredAt) > Infinity',
    ],
    [
      'ceiling: a cycle raises it',
      'Math.max(LEAST, Math.min(last, Math.max(measured, last * (1 - drop)))),',
      'Math.max(LEAST, Math.max(measured, last * (1 - drop))),',
    ],
    ['ceiling: falls without a limit', 'Math.max(measured, last * (1 - drop))', 'measured'],
    [
      'ceiling: differing cycles count as alike',
      'alike: isAlike ? confirmed : Math.max(0, alike - 1),',
      'alike: confirmed,',
    ],
    [
      'ceiling: what was not asked is saved up for ever',
      'isAhead ? mostMs : Math.min(mostMs, now - creditFrom)',
      'isAhead ? mostMs : now - creditFrom',
    ],
    [
      'ceiling: a clock that was set back stops live SKUs',
      'const isAhead = creditFrom > now + skuMs + MAX_PATIENCE_MS;',
      'const isAhead = creditFrom === Infinity;',
    ],
    [
      'ceiling: a block is tried without patience',
      'const patienceMs = PATIENCE * (triedAt - blockedAt);',
      'const patienceMs = 0;',
    ],
    [
      'ceiling: idle time shows that there is none',
      'if (idleMs <= usedMs) return ceiling;',
      'return ceiling;',
    ],
    [
      'ceiling: a block is idle time',
      'ceiling.perMinute === null || ceiling.blockedAt !== null || computedAt === null',
      'ceiling.perMinute === null || computedAt === null',
    ],
    [
      'ceiling: idle time is left out until the first call only',
      'if (after === null && before === plan.ceiling) return null;',
      'if (after === null) return null;',
    ],
  ),
  ...faultsOf(
    'src/sync/live/again.ts',
    ['test/sync/again.test.ts'],
    [
      'deferred again: what is expected goes by no second ask',
      'const mean = ownPart(calls) * first.asked;',
      'const mean = first.asked;',
    ],
    [
      'deferred again: nothing is expected',
      'const expected = first.deferred <= mean + SPREAD * Math.sqrt(mean);',
      'const expected = false;',
    ],
    [
      'deferred again: a block goes on for a minute after it was found',
      '{ ...remembered, lately: [] }',
      'remembered',
    ],
    [
      'deferred again: what was computed before is told each time',
      'explained && !before.explained ?',
      'explained ?',
    ],
    ['deferred again: they recover with the first', 'asked >= RECOVERED_SKUS &&', 'asked >= 1 &&'],
    [
      'deferred again: those that are deferred again are alike',
      'second.deferred < ALIKE_PART * second.asked',
      'second.deferred <= second.asked',
    ],
    [
      'deferred again: they are counted',
      'const left = expected ? live.deferred : again;',
      'const left = expected ? live.deferred : 0;',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/partner-faults.ts',
    ['test/sync/general-errors.test.ts'],
    [
      'general errors: one answered SKU ends them',
      'if (last.answered > WORKING_PART * (last.errors + last.answered)) return NO_ERRORS;',
      'if (last.answered > 0) return NO_ERRORS;',
    ],
    ['general errors: two calls are enough', 'calls >= RUN_CALLS && first', 'calls >= 2 && first'],
    [
      'general errors: those of SKUs that fail anyway are',
      'calls >= RUN_CALLS && first >= RUN_SKUS',
      'calls >= RUN_CALLS',
    ],
    ['general errors: never end', 'LAST_SKUS - skus) / Math', '1e9 - skus) / Math'],
  ),
  ...faultsOf(
    'src/sync/reprice/learn-call.ts',
    ['test/sync/deferred-again.pg.test.ts'],
    [
      'deferred again: each is evidence of the ceiling',
      'return { live: withoutOwn(live, { again, expected }), ...more };',
      'return { live, ...more };',
    ],
  ),
  ...faultsOf(
    'src/store/call/candidates.ts',
    ['test/sync/deferred-again.pg.test.ts'],
    [
      'deferred again: they are tried while the ceiling is met',
      "where ${due} and ${ownDeferrals(sql, 'd')} = 0",
      'where ${due}',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/packing.ts',
    ['test/sync/batch.test.ts'],
    ['deferred again: they do not catch up', 'const first = Math.min(waiting, half);', 'const first = 0;'],
    ['deferred again: catching up starves a lane', 'turns.odd < ODD_FIRST', 'turns.odd < ODD_CALLS'],
  ),
  ...faultsOf(
    'src/sync/live/choose.ts',
    ['test/sync/backlog.test.ts'],
    ['backlog: of three minutes is none', 'due >= BACKLOG_MINUTES *', 'due > BACKLOG_MINUTES *'],
    ['backlog: idle time is over in a backlog, too', 'return backlog ? grown :', 'return false ? grown :'],
    ['backlog: each minute counts as idle', 'gap > IDLE_MINUTES ? gap : 0', 'gap'],
    ['backlog: idle time makes nobody wait', 'return most + 2 * idle;', 'return most;'],
  ),
  ...faultsOf(
    'src/store/live/order.ts',
    ['test/sync/live-backlog.pg.test.ts'],
    [
      'backlog: who has waited for too long comes last',
      'order by overdue desc, gain desc, sku)',
      'order by gain desc, sku)',
    ],
    [
      'backlog: what was listed a minute ago stays listed',
      'listed_at::text is distinct from',
      'listed_at::text is not distinct from',
    ],
    ['backlog: weights do not count', 'w.weight * (w.beta', '(w.beta'],
    [
      'backlog: a gap is one of the last call only',
      'lag(c.called_at, 1, p.refreshed_at)',
      'lag(c.called_at)',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/claim.ts',
    ['test/sync/live-backlog.pg.test.ts'],
    [
      'backlog: a claim waits for another one',
      'sku = any(${names}::text[]) for update skip locked))\n    ),\n    claim as',
      'sku = any(${names}::text[]) for update))\n    ),\n    claim as',
    ],
  ),
];
