import { expect, test } from 'vitest';
import { planScreen } from '../../src/cli/plan-screen.ts';
import { type CapacityInput, capacityOf } from '../../src/sync/live/capacity.ts';
import { INPUT } from '../sync/default-capacity.ts';

/** Returns the line that says whether LIVE_INTERVAL can be kept. */
function concluded(changes: Partial<CapacityInput>): string | undefined {
  const input = { ...INPUT, ...changes };
  const more = { ...input, requestsPerMinute: input.requestsPerMinute + 10 };
  const lines = planScreen(input, capacityOf(input), capacityOf(more)).split('\n');
  return lines.find((line) => line.includes('LIVE_INTERVAL'));
}

test('the line names what is too small and how much would be enough', () => {
  expect(concluded({})).toContain('The budget is too small');
  expect(concluded({})).toContain('that takes 167 requests per minute');
  expect(concluded({ requestsPerMinute: 167 })).toContain('The budget is enough');
  expect(concluded({ liveCeiling: 833 })).toContain('ceiling on live computations is too low');
  expect(concluded({ requestsPerMinute: 300, answerSeconds: 60 })).toMatch(
    /^Answers are too long to refresh every live SKU .*: that takes 167 calls per minute\.$/,
  );
  expect(concluded({ answerSeconds: 60 })).toContain('The budget is too small');
});

test('the required requests include those for promises, and exceed a budget that is too small', () => {
  const group = { lambda: 1 / 360, weight: 1 };
  const liveGroups = [
    { ...group, count: 10_000, promised: null },
    { ...group, count: 1_000, promised: 2 },
  ];
  const skus = { skus: 220_000, liveShare: 0.05, liveGroups };
  // 10,000 every half hour are 333.3 refreshes a minute, and 1,000 every two minutes are 500.
  expect(concluded({ ...skus, requestsPerMinute: 118 })).toContain('that takes 167 requests per minute');
  expect(concluded({ ...skus, requestsPerMinute: 167 })).toContain('The budget is enough');
});
