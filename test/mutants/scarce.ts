import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in how live SKUs share the few computations of a partner. */
export const SCARCE: readonly Mutant[] = [
  ...faultsOf(
    'src/store/call/candidates.ts',
    ['test/sync/deferred-again.pg.test.ts'],
    [
      'scarce: whoever is due first is tried each time',
      'order by promised, deferrals, due_at limit 1',
      'order by promised, due_at limit 1',
    ],
    [
      'scarce: where all have reasons of their own the same ones are tried each time',
      'order by d.deferrals, d.due_at',
      'order by d.due_at',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    ['test/sync/deferrals-model.pg.test.ts', 'test/sync/deferred-again.pg.test.ts'],
    [
      'scarce: what is tried and deferred counts against it',
      '${row}.last_error is not distinct from ${met} and',
      '${row}.last_error is null and',
    ],
    ['scarce: it never counts', 'export const MOST_UNCOUNTED = 5;', 'export const MOST_UNCOUNTED = 1000;'],
  ),
  ...faultsOf(
    'src/sync/live/plan-live.ts',
    ['test/sync/live-plan.pg.test.ts', 'test/sync/live-ceiling.test.ts'],
    [
      'scarce: what was put off waits for days, though there are refreshes enough',
      'await bringForward(ctx, wait, Math.max(longest(measured), longest(refreshes)));',
      '',
    ],
    [
      'scarce: what is tried beyond the ceiling brings forward what was put off',
      'Math.max(longest(measured), longest(refreshes))',
      'longest(refreshes)',
    ],
  ),
  ...faultsOf(
    'src/sync/live/ceiling.ts',
    ['test/sync/live-ceiling.test.ts'],
    ['scarce: a ceiling is measured by one cycle', 'return alike > 0 ? perMinute : 0;', 'return perMinute;'],
  ),
  ...faultsOf(
    'src/store/answer/writes.ts',
    ['test/sync/deferrals-model.pg.test.ts', 'test/sync/deferred-again.pg.test.ts'],
    [
      'scarce: what was tried in vain is set back with its next deferral',
      'when own.deferrals = 0 and h.because is null then 1 else',
      'else',
    ],
    [
      'scarce: what was tried in vain counts after an error',
      'when not h.deferred then own.deferrals when',
      'when not h.deferred then d.deferrals when',
    ],
    [
      'scarce: what is set back is forgotten while the ceiling is met',
      'last_error = case when h.deferred and own.deferrals > 0 then null else h.because end',
      'last_error = h.because',
    ],
    [
      'scarce: who is tried too often stays in its lane',
      ' and (h.because is null or d.deferrals < ${constant(tx, MOST_UNCOUNTED)})',
      '',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/reprice.ts',
    ['test/sync/deferred-again.pg.test.ts'],
    [
      'scarce: nobody says that the ceiling was met',
      'ceilingMet: plan.ceiling.blockedAt !== null,',
      'ceilingMet: false,',
    ],
  ),
  ...faultsOf(
    'src/store/live/limits.ts',
    ['test/store/lesson.pg.test.ts'],
    [
      'scarce: credit is given back while the ceiling is met',
      "where ${unplanned(sql, ms > 0, 'boolean')} and blocked_at is null",
      "where ${unplanned(sql, ms > 0, 'boolean')}",
    ],
  ),
  ...faultsOf(
    'src/sync/live/ceiling.ts',
    ['test/sync/live-ceiling.test.ts', 'test/sync/scarce.test.ts'],
    ['scarce: no ceiling is less than five a minute', 'const LEAST = 1;', 'const LEAST = 5;'],
    [
      'scarce: a ceiling of next to nothing is found out of later',
      'Math.max(perMinute, LEAST_TRIED) * further',
      'perMinute * further',
    ],
    ['scarce: a ceiling grows while it is met', 'Math.min(now, blockedAt ?? Infinity)', 'now'],
    [
      'scarce: who is deferred again takes the credit of others',
      'skuMs < LEAST_RETURNED_MS ? 0 : skuMs * deferredAgain;',
      '0;',
    ],
    [
      'scarce: what is given back comes in bursts where much is computed',
      'skuMs < LEAST_RETURNED_MS ? 0 : skuMs * deferredAgain;',
      'skuMs * deferredAgain;',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/learn-call.ts',
    ['test/sync/deferred-again.pg.test.ts'],
    [
      'scarce: what a call has taken in vain is not given back',
      'returnedMs: returnedCreditMs(planned.spend, deferredAgain(claim.skus, skuAnswers)),',
      '',
    ],
  ),
  ...faultsOf(
    'drizzle/0085_scarce_promises.sql',
    ['test/store/promises-scarce.pg.test.ts'],
    [
      'scarce: what is not computed for long is counted on all the same',
      "WHEN blocked_at < clock_timestamp() - interval '3 minutes' THEN",
      "WHEN blocked_at < clock_timestamp() - interval '3 years' THEN",
    ],
    ['scarce: a promise has no time for a third ask', 'WHEN rate < 4 THEN 1050', 'WHEN rate < 4 THEN 390'],
    [
      'scarce: what is too short is promised',
      'NOT (k.live AND a.max_age < catalog_internal.shortest_promise(r.rate)) AS',
      'true AS',
    ],
    [
      'scarce: a promise that is too short takes from others',
      'sum(n.demand) FILTER (WHERE n.is_possible) OVER',
      'sum(n.demand) OVER',
    ],
    [
      'scarce: of what needs nothing the account is said to keep too little',
      'left_out = without_room',
      'left_out = (SELECT count(*) FROM catalog_internal.watched WHERE max_age IS NOT NULL) - cardinality(fitting)',
    ],
    [
      'scarce: what is too short needs requests',
      '(WHERE live AND NOT coalesce(demand > most, false))',
      '(WHERE live)',
    ],
    [
      'scarce: where no ceiling is known all are too short',
      'count(*) FILTER (WHERE f.live AND f.demand > most)',
      'count(*) FILTER (WHERE f.live AND f.demand > coalesce(most, 0))',
    ],
    [
      'scarce: what is too short is said only by who weighs all',
      'n.others <= c.others AND coalesce(n.each, true)',
      'n.others <= c.others',
    ],
    [
      'scarce: snapshot-priced SKUs come earlier for the ceiling',
      'live_promised_interval(w.max_age, CASE WHEN d.live THEN rate END)',
      'live_promised_interval(w.max_age, rate)',
    ],
    [
      'scarce: the end of a wait is when a SKU is asked',
      'make_interval(secs => 60 / catalog_internal.live_rate() * (',
      'make_interval(secs => 0 * (',
    ],
    [
      'scarce: a time is told while nothing is computed',
      "c.blocked_at < clock_timestamp() - interval '30 minutes'",
      "c.blocked_at < clock_timestamp() - interval '30 years'",
    ],
    [
      'scarce: a time is told while the live source fails',
      "greatest(out_since, c.credit_from) > clock_timestamp() - interval '1 hour'",
      "greatest(out_since, c.credit_from) > clock_timestamp() + interval '1 hour'",
    ],
  ),
  ...faultsOf(
    'src/store/answer/writes.ts',
    ['test/store/promises-scarce.pg.test.ts'],
    [
      'scarce: an answer leaves no time for a deferral',
      'case when d.live then (select catalog_internal.live_rate()) end',
      'null::float8',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    ['test/store/promises-scarce.pg.test.ts'],
    [
      'scarce: nobody comes first earlier than 45 seconds before',
      'then coalesce((select catalog_internal.deferral_lead(catalog_internal.live_rate())), 0) else 0 end',
      'then 0 else 0 end',
    ],
  ),
  ...faultsOf(
    'src/store/call/candidates.ts',
    ['test/store/promises-scarce.pg.test.ts'],
    [
      'scarce: what is promised is tried first',
      'order by first.promised, l.lane limit 1',
      'order by l.lane limit 1',
    ],
    [
      'scarce: what is asked for is not tried if it is promised',
      "d.promised_by is not null and d.lane > ${constant(sql, laneNumber('urgent'))} as promised",
      'd.promised_by is not null as promised',
    ],
  ),
  ...faultsOf(
    'src/store/call/bulk-call.ts',
    ['test/store/promises-scarce.pg.test.ts'],
    [
      'scarce: who comes first no longer is not woken for later',
      'and greatest(promised_at, promised_by - ${longestLead(sql, sql`c.live`)}) > now()',
      'and promised_at > now()',
    ],
  ),
  ...faultsOf(
    'src/sync/live/ceiling.ts',
    ['test/sync/live-ceiling.test.ts', 'test/sync/scarce.test.ts'],
    [
      'scarce: the ceiling grows while less is asked than it allows',
      'const usedMs = clamp((IDLE_SKUS * 60_000) / liveCeilingAt(ceiling, from), leastMs, IDLE_MS);',
      'const usedMs = IDLE_MS;',
    ],
  ),
  ...faultsOf(
    'src/sync/live/ceiling.ts',
    ['test/sync/slow-calls.test.ts'],
    [
      'scarce: the time between two calls is idle where there are few',
      'Math.max(LEAST_IDLE_MS, (IDLE_CALLS * 60_000) / callsPerMinute)',
      'LEAST_IDLE_MS',
    ],
  ),
];
