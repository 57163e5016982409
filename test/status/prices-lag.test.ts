import { expect, test } from 'vitest';
import { judgeHealth } from '../../src/status/health.ts';
import { factsOf, mirrorWith, NOW } from './cases.ts';

test('prices that lag behind the reports are reported with their age and how many were wrong', () => {
  const facts = factsOf(mirrorWith({}));
  const latePrices = { since: new Date(NOW.getTime() - 720_000), looks: 40.2, found: 19.8 };
  const health = judgeHealth({ ...facts, latePrices });
  expect(health.state).toBe('degraded');
  expect(health.reasons).toMatchObject([{ code: 'prices-lag' }]);
  expect(health.reasons[0]?.text).toContain('for 12m: 20 of the last 40 answers');
  expect(judgeHealth({ ...facts, latePrices: null }).reasons).toEqual([]);
});
