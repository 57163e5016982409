import { expect, test } from 'vitest';
import { judgeHealth, NO_OWN_FACTS } from '../../src/status/health.ts';
import { CASES, factsOf } from './cases.ts';

test('without its queues a daemon runs due tasks by itself, so sync has not stopped', () => {
  const own = { ...NO_OWN_FACTS, queues: 'the queues (redis) do not answer: connect ECONNREFUSED' };
  const { state, reasons } = judgeHealth(factsOf(CASES.healthy), own);
  expect(state).toBe('degraded');
  expect(reasons.map(({ code, text }) => [code, text])).toEqual([
    [
      'queues-unavailable',
      'the queues (redis) do not answer: connect ECONNREFUSED; this daemon runs what is due by itself; ' +
        'check the server that REDIS_URL (or else DATABASE_URL) names',
    ],
  ]);
});
