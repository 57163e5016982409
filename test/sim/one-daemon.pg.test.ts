import { expect, test } from 'vitest';
import { AMBIGUITIES } from '../../src/sandbox/index.ts';
import { runs } from '../support/soak.ts';
import { ACTS } from './neighbours.ts';
import { fillMirror, playHistories, WITH_DELTA } from './play.ts';
import { countIn, useRigs } from './rig.ts';
import { SPELLS } from './spells.ts';

const HISTORIES = runs(15, 220);
const rigs = useRigs(fillMirror);

/** In fewer histories, rare events may be missing by chance. */
const ENOUGH = 200;
/** The least number of each event in five hundred histories, or in proportion: none is left out by mistake. */
const AMONG_THEM = {
  crash: 60,
  'crash in a manifest': 5,
  'unanswered commit': 8,
  'silent connection': 30,
  'clock set back': 30,
  'clock set forward': 30,
  'clock.set-back': 15,
  'delta.chain-broken': 75,
  'manifest.downloaded': 75,
  'overtaken by a mark': 50,
  'bulk deferred': 100,
  'bulk omitted': 15,
  'bulk contradictory': 20,
  'bulk unreadable': 7,
  'bulk unexpected': 20,
  'bulk.failed': 12,
  'size-type.changed': 50,
  'actionable prices': 3900,
  'actionable after a move': 280,
  'plausible move': 800,
  watched: 100,
  restore: 10,
  failover: 30,
  'a seller waits': 30,
  'answered to a seller': 30,
  'delta cached': 3,
  'delta bent': 15,
  'manifest bent': 5,
  'SKU in errors': 10,
  'call too large': 3,
  'call refused for a SKU': 3,
  'a chunk ends': 30,
  ages: 30,
  'a follower is up to date': 100,
  'a follower is told that it is late': 6,
  paused: 50,
  promised: 50,
  'refreshed as wanted': 100,
  'record from a cache': 12,
  ...Object.fromEntries(Object.keys(SPELLS).map((spell) => [`${spell} begins`, 20])),
  ...Object.fromEntries(Object.keys(ACTS).map((act) => [act, 8])),
  ...Object.fromEntries(Object.keys(AMBIGUITIES).map((kind) => [kind, 3])),
};

test(`${HISTORIES} histories of one daemon with deltas, crashes and faults`, async () => {
  if (!(await playHistories(rigs, { first: 1, wanted: HISTORIES, daemons: 1 }))) return;
  expect(countIn(rigs, WITH_DELTA)).toBeGreaterThanOrEqual(HISTORIES);
  if (HISTORIES < ENOUGH) return;
  const part = HISTORIES / 500;
  const rare = Object.entries(AMONG_THEM).filter(
    ([what, least]) => countIn(rigs, what) < Math.max(1, Math.floor(least * part)),
  );
  expect(rare.map(([what]) => [what, countIn(rigs, what)])).toEqual([]);
}, 1_200_000);
