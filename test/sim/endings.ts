import { refreshAll } from '../../src/store/sellers/refresh.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import type { Draw } from './faults.ts';
import { HELD_BACK_MS, readHeldBack } from './held-back.ts';
import type { Judge } from './judge.ts';
import { expectPromisesAreKept } from './promised.ts';
import { type Left, readManifest, untilNothingIsDue } from './rest.ts';
import type { Rig } from './rig.ts';

const MINUTE = 60_000;
/** A cached answer without the reported change is asked for again within 17 minutes. */
const LONGEST_CACHED_MS = 18 * MINUTE;

/** A history whose faults are over: the one remaining daemon, and the market. */
export interface Rested {
  readonly rig: Rig;
  readonly judge: Judge;
  readonly draw: Draw;
  readonly left: () => Left;
  readonly move: () => void;
  readonly snapshot: () => void;
  readonly look: () => Promise<void>;
}

/** Works until nothing is due. */
export async function untilAtRest({ rig, left, look }: Rested): Promise<void> {
  await untilNothingIsDue(rig, left());
  await look();
}

/** Repairs what deltas left out by a manifest, and what caches kept by further refreshes. */
export async function makeGood(rested: Rested): Promise<void> {
  const { rig, judge, left, snapshot } = rested;
  const { partner, time } = rig;
  if (partner.omitted.size > 0) {
    snapshot();
    await readManifest(rig, left());
    partner.omitted.clear();
    await untilAtRest(rested);
  }
  if (!judge.truth.hasLate) return;
  await time.pass(LONGEST_CACHED_MS);
  snapshot();
  await untilAtRest(rested);
  await judge.expectCoveredAreRight();
}

/** Promises a seller some ages while the market continues. */
export async function promisesAreKept(rested: Rested): Promise<void> {
  const { rig, left, draw, move, snapshot } = rested;
  await expectPromisesAreKept(rig, left(), draw, () => {
    move();
    snapshot();
  });
  await untilAtRest(rested);
}

/** Refreshes every SKU once more, after which all of the mirror is true, and is soon said to be. */
export async function everythingTrue(rested: Rested): Promise<void> {
  const { sql, partner, time } = rested.rig;
  await refreshAll(sql, 'prices');
  await untilAtRest(rested);
  await expectMirrorIsTrue(sql, partner.world);
  const until = time.at + HELD_BACK_MS;
  for (;;) {
    const held = await readHeldBack(sql);
    if (held.length === 0) return;
    if (time.at > until) throw new Error(`held back for ever: ${JSON.stringify(held)}`);
    await time.pass(6 * MINUTE);
    rested.snapshot();
    await untilAtRest(rested);
  }
}
