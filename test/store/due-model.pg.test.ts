import {
  array,
  assert,
  asyncProperty,
  constantFrom,
  integer,
  oneof,
  option,
  boolean,
  record,
  shuffledSubarray,
  constant,
} from 'fast-check';
import { test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { type Claim, DUE_LANES, type Quota, returnClaim, endWaits } from '../../src/store/ledger/due.ts';
import { runs } from '../support/soak.ts';
import { LedgerModel } from './due-model.ts';
import {
  empty,
  found,
  HOUR,
  knownSkus,
  LEASE_MS,
  ledger,
  REFRESH,
  mark,
  passHours,
  useStore,
} from './support.ts';

const store = useStore();
const SNAPSHOT = ['A', 'B', 'C', 'D'];
const LIVE = ['L', 'M'];
const UNLISTED = ['U', 'V'];
const SKUS = [...SNAPSHOT, ...LIVE, ...UNLISTED];
const RESULTS = ['record', 'not_found', 'deferred', 'reported', 'unreadable'] as const;

const anyMark = record({
  do: constant('mark' as const),
  skus: shuffledSubarray(SKUS, { minLength: 1 }),
  reason: constantFrom(
    'changed',
    'changed',
    'changed',
    'refresh',
    'live',
    'new',
    'absent',
    'metadata',
    'sweep',
    'unlisted',
  ),
  live: option(boolean()),
});
const anyClaim = record({
  do: constant('claim' as const),
  lanes: shuffledSubarray([...DUE_LANES], { minLength: 3 }),
  count: integer({ min: 1, max: 3 }),
  earlyHours: constantFrom(0, 0, 5),
});
const anyAnswer = record({
  do: constant('answer' as const),
  which: integer({ min: 0, max: 5 }),
  results: array(constantFrom(...RESULTS), { minLength: 8, maxLength: 8 }),
  waitHours: constantFrom(1.5, 4.5),
});
const anyStep = oneof(
  { weight: 4, arbitrary: anyMark },
  { weight: 4, arbitrary: anyClaim },
  { weight: 4, arbitrary: anyAnswer },
  { weight: 1, arbitrary: record({ do: constant('release' as const), which: integer({ min: 0, max: 5 }) }) },
  { weight: 2, arbitrary: record({ do: constant('pass' as const), hours: integer({ min: 1, max: 12 }) }) },
  { weight: 2, arbitrary: constant({ do: 'wake' as const }) },
);
type Step = typeof anyStep extends { generate(...args: never[]): { value: infer S } } ? S : never;

/**
 * A report during a request, and one answer to each: the second contains nothing new, so the SKU is requested
 * again.
 */
const REPORTED_TWICE: readonly Step[] = [
  { do: 'mark', skus: ['C'], reason: 'changed', live: null },
  { do: 'claim', lanes: ['urgent', 'live', 'sweep'], count: 1, earlyHours: 0 },
  { do: 'mark', skus: ['C', 'M'], reason: 'changed', live: null },
  { do: 'answer', which: 0, results: ['record'], waitHours: 1.5 },
  { do: 'claim', lanes: ['live', 'urgent', 'sweep'], count: 1, earlyHours: 0 },
  { do: 'answer', which: 0, results: ['record'], waitHours: 1.5 },
];

/** A SKU that was not found is requested again after its first record that follows a report. */
const FOUND_AGAIN: readonly Step[] = [
  { do: 'mark', skus: ['D'], reason: 'changed', live: null },
  { do: 'claim', lanes: ['urgent'], count: 1, earlyHours: 0 },
  { do: 'answer', which: 0, results: ['not_found'], waitHours: 1.5 },
  { do: 'mark', skus: ['D'], reason: 'changed', live: null },
  { do: 'claim', lanes: ['urgent'], count: 1, earlyHours: 0 },
  { do: 'answer', which: 0, results: ['record'], waitHours: 1.5 },
];

/** Runs steps on the ledger and on the model; the answers are to one of the newest claims, late ones included. */
async function run(steps: readonly Step[]): Promise<void> {
  const { sql } = store;
  await empty(sql);
  await knownSkus(sql, SNAPSHOT);
  await knownSkus(sql, LIVE, { priceSource: 'live' });
  await knownSkus(sql, UNLISTED, { priceSource: null, listed: false });
  const model = new LedgerModel(
    new Map([
      ...SNAPSHOT.map((s) => [s, 'snapshot'] as const),
      ...LIVE.map((s) => [s, 'live'] as const),
      ...UNLISTED.map((s) => [s, null] as const),
    ]),
  );
  const claims: Claim[] = [];
  const claimOf = (which: number) => claims.at(-1 - which);
  for (const step of steps) {
    if (step.do === 'mark') {
      await mark(sql, step.skus, step.reason, step.live);
      model.mark(step.skus, step.reason, step.live);
    } else if (step.do === 'claim') {
      const quotas = step.lanes.flatMap((lane): Quota[] =>
        [true, false].map((live) => ({
          lane,
          live,
          count: step.count,
          earlySeconds: step.earlyHours * 3600,
        })),
      );
      const claim = await claimDue(sql, { quotas }, LEASE_MS);
      model.claimed(quotas, claim);
      if (claim !== null) claims.push(claim);
    } else if (step.do === 'answer') {
      const claim = claimOf(step.which);
      if (claim === undefined) continue;
      const results = claim.skus.map(({ sku }, i) =>
        skuResultOf(sku, step.results[i] ?? 'record', step.waitHours),
      );
      const { accepted } = await applyAnswer(sql, claim, results, REFRESH);
      model.answered(claim, results, accepted);
    } else if (step.do === 'release') {
      const claim = claimOf(step.which);
      if (claim === undefined) continue;
      await returnClaim(
        sql,
        claim,
        claim.skus.map(({ sku }) => sku),
      );
      model.released(claim);
    } else if (step.do === 'pass') {
      await passHours(sql, step.hours);
      model.now += step.hours;
    } else {
      model.waitsOver(await endWaits(sql, 100));
    }
    model.compare(await ledger(sql));
  }
}

function skuResultOf(sku: string, kind: (typeof RESULTS)[number], waitHours: number): SkuResult {
  if (kind === 'record') return found(sku, { 9: 100 });
  if (kind === 'not_found') return { sku, kind };
  const waitMs = waitHours * HOUR;
  return kind === 'deferred' ? { sku, kind, waitMs } : { sku, kind: 'error', because: kind, waitMs };
}

test(
  'any history of marks, claims, answers on time and late, waits and leases leaves the ledger as promised: no change is ' +
    'lost, nobody holds a SKU twice, a stale answer settles nothing, a deferred SKU waits its time and keeps its place',
  async () => {
    await assert(asyncProperty(array(anyStep, { maxLength: 60, size: 'max' }), run), {
      numRuns: runs(25, 60),
      examples: [[[...REPORTED_TWICE]], [[...FOUND_AGAIN]]],
    });
  },
);
