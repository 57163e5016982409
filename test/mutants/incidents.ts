import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what starts an incident, and in what ends one. */
export const INCIDENTS: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/live/incident.ts',
    ['test/sync/incident.test.ts', 'test/sync/incident-drawn.test.ts'],
    ['incident: begins only above nine tenths', 'part >= ENTER_LIVE_PART', 'part > ENTER_LIVE_PART'],
    ['incident: is not over at exactly the lower part', 'part <= LEAVE_LIVE_PART', 'part < LEAVE_LIVE_PART'],
    [
      'incident: counts end one that deferrals began',
      "return present === 'live-count' && isOver ? null : present;",
      'return isOver ? null : present;',
    ],
    ['incident: few calls begin one', 'asked >= ENTER_ASKED &&', 'asked >= 1 &&'],
    [
      'incident: half of those asked is not enough',
      'deferred >= asked * ENTER_DEFERRED_PART',
      'deferred > asked * ENTER_DEFERRED_PART',
    ],
    ['incident: deferrals end one that counts began', 'present ?? (asked', '(asked'],
    [
      'incident: no trial ends one that counts began',
      'return isOver ? null : present;',
      "return present === 'deferrals' && isOver ? null : present;",
    ],
    ['incident: a trial of two ends it', 'asked >= Math.min(MIN_TRIED, callSkus) &&', 'asked >= 1 &&'],
    [
      'incident: where calls have one or two SKUs it never ends',
      'asked >= Math.min(MIN_TRIED, callSkus) &&',
      'asked >= MIN_TRIED &&',
    ],
    [
      'incident: where calls have no more than is computed live it is never tried',
      'if (now - incident.triedAt < everyMs) return null;',
      'if (now - incident.triedAt < everyMs || callSkus <= liveBudget) return null;',
    ],
    [
      'incident: is tried before counts can show it',
      'Math.max(TRIAL_EVERY_MS, TRIAL_CHECKS * catalogCheckMs)',
      'TRIAL_EVERY_MS',
    ],
    [
      'incident: is tried as often as its counts are asked for',
      'Math.max(TRIAL_EVERY_MS, TRIAL_CHECKS * catalogCheckMs)',
      'TRIAL_CHECKS * catalogCheckMs',
    ],
    [
      'incident: disproved counts begin the next',
      'present === null && disproved ? null',
      'present === null && false ? null',
    ],
    [
      'incident: a file that is of another snapshot makes one up',
      'announced - Math.max(0, miscount)',
      'announced - miscount',
    ],
    ['incident: is tried too early', 'now - incident.triedAt < everyMs', 'now - incident.triedAt < 0'],
    [
      'incident: a trial is larger than a call',
      'Math.min(callSkus, Math.max(1, Math.floor(liveBudget)) * TRIAL_BUDGETS)',
      'Math.max(1, Math.floor(liveBudget)) * TRIAL_BUDGETS',
    ],
  ),
  ...faultsOf(
    'src/sync/live/weigh-incident.ts',
    ['test/sync/incident.pg.test.ts'],
    ['incident: counts are never believed again', 'ofFile || isUsualCount(evidence)', 'ofFile'],
    [
      'incident: what a file says is disproved before',
      'ofFile || isUsualCount(evidence)',
      'isUsualCount(evidence)',
    ],
  ),
  ...faultsOf(
    'src/store/live/limits.ts',
    ['test/sync/incident.pg.test.ts'],
    [
      'incident: what low counts end is disproved',
      'case when ${to}::text is not null then now() end, solved_at',
      'now(), solved_at',
    ],
  ),
  ...faultsOf(
    'src/sync/live/learn.ts',
    ['test/sync/incident.pg.test.ts'],
    [
      'incident: a trial answered as any call ends one by counts',
      "incident?.because === 'live-count' && callSkus",
      'false && callSkus',
    ],
  ),
  ...faultsOf(
    'src/sync/live/learn.ts',
    ['test/sync/incident-drawn.test.ts'],
    [
      'incident: where calls have no more than is computed live no trial ends one by counts',
      "'live-count' && callSkus > budget && tried",
      "'live-count' && tried",
    ],
    [
      'incident: how many SKUs calls have is not known to what judges a trial',
      'judgeIncident(from, evidence, { callSkus })',
      'judgeIncident(from, evidence)',
    ],
  ),
  ...faultsOf(
    'drizzle/0060_reported_in_turn.sql',
    ['test/store/reported-live.pg.test.ts'],
    [
      'incident: what was reported before it is right in its turn',
      "WHEN k.in_turn THEN date_trunc('milliseconds', s.reported_at) > s.asked_at ELSE",
      'WHEN k.in_turn THEN false ELSE',
    ],
    ['trust: what the ledger has lost was not reported', 'WHEN d.sku IS NULL OR CASE', 'WHEN CASE'],
  ),
];
