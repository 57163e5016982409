import { expect, test } from 'vitest';
import { runs } from '../support/soak.ts';
import { fillMirror, playHistories, WITH_DELTA } from './play.ts';
import { countIn, useRigs } from './rig.ts';

const HISTORIES = runs(1000);
const rigs = useRigs(fillMirror);

/** What is in a thousand histories at least: nothing of it is left out by mistake. */
const AMONG_THEM = {
  crash: 150,
  'crash in a manifest': 10,
  'unanswered commit': 15,
  'delta.chain-broken': 150,
  'manifest.downloaded': 150,
  'overtaken by a mark': 100,
  'bulk deferred': 200,
  'bulk omitted': 30,
  'bulk contradictory': 40,
  'bulk unreadable': 15,
  'bulk unexpected': 40,
  'bulk.failed': 25,
  'size-type.changed': 100,
};

test(`${HISTORIES} histories of one daemon with deltas, crashes and faults`, async () => {
  if (!(await playHistories(rigs, { first: 1, wanted: HISTORIES, daemons: 1 }))) return;
  expect(countIn(rigs, WITH_DELTA)).toBeGreaterThanOrEqual(HISTORIES);
  const rare = Object.entries(AMONG_THEM).filter(([what, least]) => countIn(rigs, what) < least);
  expect(rare.map(([what]) => [what, countIn(rigs, what)])).toEqual([]);
}, 1_200_000);
