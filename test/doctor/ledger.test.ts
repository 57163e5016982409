import { expect, test } from 'vitest';
import { ledgerProblem } from '../../src/cli/doctor.ts';
import { UNDAMAGED } from '../../src/cli/doctor/damage.ts';
import type { PostgresFacts } from '../../src/cli/doctor/postgres-facts.ts';

const SOUND: PostgresFacts = {
  versionNumber: 180_000,
  version: '18.0',
  encoding: 'UTF8',
  role: 'mirror',
  login: 'mirror',
  database: 'seller',
  inRecovery: false,
  readOnly: false,
  readOnlyBy: 'default',
  writeProblem: null,
  mayCreate: true,
  mayTemp: true,
  mayCreateRoles: true,
  hasReader: true,
  hasWatcher: true,
  rightsWhole: true,
  migrated: true,
  queueTablesCurrent: true,
  queueLacking: [],
  owns: true,
  occupied: [],
  roles: [],
  creators: [],
  pending: 0,
  unknown: 0,
  connectionsMost: 100,
  connectionsOthers: 0,
  connectionLimit: null,
  locksMost: 6400,
  historyChunks: 2,
  daemons: 0,
  pooling: { kept: 'session', dropped: [], role: 'mirror', database: 'shop' },
  aheadMs: 0,
  snapshotHolder: null,
  lockHolders: [],
  lacking: [],
  misowned: [],
  acting: 'mirror',
  neighbours: [],
  eventTriggers: [],
  unchangeable: [],
  damage: UNDAMAGED,
  seesSessions: true,
};

test.each<[string, Partial<PostgresFacts>, RegExp | null]>([
  ['a migrated mirror', {}, null],
  ['one that was never migrated: nobody sends', { migrated: false, pending: 12, owns: false }, null],
  ['one of a later version', { unknown: 1 }, /a later version/],
  ['one of a later version that this one never migrated', { migrated: false, unknown: 1 }, /a later version/],
  [
    'a schema that somebody else has made',
    { migrated: false, occupied: [{ kind: 'schema-of-another', text: '', remedy: '' }] },
    /are not the mirror's/,
  ],
  [
    'a cluster with another role of that name: nobody sends',
    { migrated: false, occupied: [{ kind: 'role-of-another', text: '', remedy: '' }] },
    null,
  ],
  ['one of another role', { owns: false }, /lacks the privileges/],
  ['one of an older version', { pending: 1 }, /apply the pending migrations first/],
  ['a standby', { inRecovery: true }, /accepts no writes/],
  ['a read-only server', { readOnly: true }, /accepts no writes/],
  ['a full disk', { writeProblem: { said: 'no space left', kind: null, remedy: null } }, /accepts no writes/],
])('the partner is asked only through a working ledger: %s', (_, facts, problem) => {
  const said = ledgerProblem({ ...SOUND, ...facts });
  if (problem === null) expect(said).toBeNull();
  else expect(said).toMatch(problem);
});
