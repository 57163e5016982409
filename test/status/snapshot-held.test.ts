import { expect, test } from 'vitest';
import { judgeHealth } from '../../src/status/health.ts';
import { CASES, factsOf } from './cases.ts';

test.each([
  [
    'prepared',
    "the prepared transaction it's (role bi) has held a snapshot for 2.0h:",
    "roll it back: rollback prepared 'it''s'",
  ],
  ['slot', "the replication slot it's has held a snapshot for 2.0h:", "pg_drop_replication_slot('it''s')"],
] as const)('a snapshot that is held names its holder and how to end it: %s', (kind, who, remedy) => {
  const holder = {
    kind,
    pid: null,
    role: 'bi',
    name: "it's",
    seconds: 7200,
    transactions: 9,
    deadVersions: 2e6,
  };
  const reasonsWith = (deadVersions: number) =>
    judgeHealth({ ...factsOf(CASES.healthy), snapshotHolder: { ...holder, deadVersions } }).reasons;
  expect(reasonsWith(2e6)).toMatchObject([{ code: 'snapshot-held', level: 'degraded' }]);
  expect(reasonsWith(2e6)[0]?.text.startsWith(who)).toBe(true);
  expect(reasonsWith(2e6)[0]?.text.endsWith(remedy)).toBe(true);
  expect(reasonsWith(100_000)).toEqual([]);
});
