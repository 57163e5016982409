import { seeded } from '../hostile/random.ts';
import { playOn } from './fortune.ts';
import { History } from './history.ts';
import { countIn, type Rig } from './rig.ts';

/** Fills the mirror as every history finds it, by a daemon without faults. */
export async function fillMirror(rig: Rig): Promise<void> {
  const history = new History(rig, { draw: () => 0, daemons: 1 });
  await history.rest();
}

/**
 * Plays a history of each seed from `first` on, on whichever rig is free, until a delta was applied in `wanted` of
 * them. SEED=n in the environment plays only that one, to reproduce a failure, and returns false.
 */
export async function playHistories(
  rigs: readonly [Rig, ...Rig[]],
  { first, wanted, daemons }: { readonly first: number; readonly wanted: number; readonly daemons: number },
): Promise<boolean> {
  const only = process.env['SEED'];
  if (only !== undefined) {
    await playOne(rigs[0], Number(only), daemons);
    return false;
  }
  let seed = first - 1;
  const failure = new AbortController();
  const played = await Promise.allSettled(
    rigs.map(async (rig) => {
      while (!failure.signal.aborted && countIn(rigs, WITH_DELTA) < wanted) {
        seed += 1;
        await playOne(rig, seed, daemons).catch((error: unknown) => {
          failure.abort();
          throw error;
        });
      }
    }),
  );
  for (const result of played) if (result.status === 'rejected') throw result.reason;
  return true;
}

/** Histories in which a delta brought something. */
export const WITH_DELTA = 'histories with a delta';

async function playOne(rig: Rig, seed: number, daemons: number): Promise<void> {
  const draw = seeded(seed);
  const options = {
    liveBudget: draw(3) === 0 ? 2 : 5,
    deltaMaxChanges: draw(6) === 0 ? 3 : null,
    deltaHops: draw(3) === 0 ? 1 : Infinity,
  };
  await rig.reset(options, draw(8) === 0 ? null : draw(2 ** 31));
  const length = 20 + draw(16);
  const history = new History(rig, { draw, daemons });
  const before = rig.count('delta.applied');
  try {
    await playOn(rig, () => history.live(length));
  } catch (error) {
    const steps = history.log.map((step, n) => `${n + 1}. ${step}`).join('\n');
    throw new Error(`SEED=${seed} fails, after\n${steps}`, { cause: error });
  }
  for (const [kind, times] of rig.partner.ambiguities.drawn) rig.note(kind, times);
  if (rig.count('delta.applied') > before) rig.note(WITH_DELTA);
}
