import { faultsOf, type Mutant } from './mutant.ts';

const PLAN = ['test/sync/packing.test.ts', 'test/sync/batch.test.ts'];

/** Faults in which of the due SKUs a call carries. */
export const PACKING: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/reprice/packing.ts',
    PLAN,
    [
      'plan: live slots beyond the budget',
      'Math.max(0, Math.min(Math.floor(limits.liveBudget), callSkus))',
      'Math.max(0, Math.min(Math.ceil(limits.liveBudget), callSkus))',
    ],
    [
      'plan: refreshes of live SKUs have nearly all live slots beside those without a price',
      'Math.max(0, Math.floor((refreshed - fresh) / 2))',
      '0',
    ],
    ['plan: live SKUs crowd out all others', 'crowded && turns.liveLast', 'turns.liveLast && false'],
    [
      'plan: lanes behind the first have no part',
      'const part = Math.floor(slots * GUARANTEED_PART);',
      'const part = 0;',
    ],
    [
      'plan: one lane behind is always the favoured',
      '[...turns.lanes.filter((lane) => lane !== favoured), favoured]',
      'turns.lanes',
    ],
    [
      'plan: lanes take turns by calls in which they have no slot',
      'const takesTurns = slots > 0 && part === 0',
      'const takesTurns = part === 0',
    ],
    [
      'plan: live SKUs and the others have the same turns',
      'split(cheapDue, slots, turns.others)',
      'split(cheapDue, slots, ofLive)',
    ],
    [
      'plan: a twentieth of a call is room for others, and less of it, too',
      'Math.max(1, callSkus * GUARANTEED_PART)',
      '1',
    ],
    [
      'plan: live SKUs that had no slot in the last call wait for another turn',
      'turns.liveLast && liveCount > 0,',
      'turns.liveLast,',
    ],
    [
      'plan: live SKUs have nothing of what others leave',
      'Math.min(budget, Math.max(0, callSkus - countOf(cheapDue)))',
      '0',
    ],
    [
      'plan: spare slots stay empty',
      "count: slots - cheapCount + (cheap.get('sweep') ?? 0),",
      "count: cheap.get('sweep') ?? 0,",
    ],
    [
      'plan: spare slots take SKUs of a moment ago',
      'earlySeconds: Math.max(early.sweep, limits.spareSeconds),',
      'earlySeconds: Infinity,',
    ],
    [
      'plan: unlisted SKUs are claimed early',
      "return lane === PROMISED || (lane === 'live' && !live) ? 0 : early[lane];",
      'return lane === PROMISED ? 0 : early[lane];',
    ],
    [
      'plan: suspects of different calls share one',
      'suspects.filter((other) => other.largestCall === largestCall)',
      'suspects',
    ],
    [
      'plan: suspects beyond the live budget',
      'Math.min(counted(true), budget, most)',
      'Math.min(counted(true), most)',
    ],
  ),
];
