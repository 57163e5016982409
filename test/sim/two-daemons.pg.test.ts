import { expect, test } from 'vitest';
import { runs } from '../support/soak.ts';
import { fillMirror, playHistories, WITH_DELTA } from './play.ts';
import { countIn, useRigs } from './rig.ts';

const HISTORIES = runs(15, 90);
const rigs = useRigs(fillMirror);

test(`${HISTORIES} histories of two daemons with deltas, crashes and faults`, async () => {
  if (!(await playHistories(rigs, { first: 1_000_001, wanted: HISTORIES, daemons: 2 }))) return;
  expect(countIn(rigs, WITH_DELTA)).toBeGreaterThanOrEqual(HISTORIES);
  // An event that only two daemons can cause: an answer whose claim was taken over. In fewer histories it may be
  // missing by chance.
  if (HISTORIES >= 90) expect(countIn(rigs, 'bulk late')).toBeGreaterThanOrEqual(3);
}, 1_200_000);
