import { expect, onTestFinished, test } from 'vitest';
import { seeded } from '../../bench/freshness/random.ts';
import { connect } from '../../src/store/connection/db.ts';
import { runs } from '../support/soak.ts';
import { Day } from './day.ts';
import { type Claims, Lively, type LivelyMarket } from './lively.ts';
import { useRig } from './rig.ts';
import { nextMidnight } from './time.ts';

/*
 * How well p_right is calibrated for snapshot prices in the first hour after the initial load, in random markets whose
 * SKUs move every few minutes. Other refreshes teach little there: most SKUs have just been refreshed for a report.
 */

/** Measured in four such markets: 5 to 11 percentage points; 13 to 25 if only other refreshes taught. */
const MOST_TOO_HIGH = 0.12;
const MOST_TOO_LOW = 0.03;

const rig = useRig(() => Promise.resolve());

function drawn(random: () => number): LivelyMarket {
  const least = 1.5 * 2 ** random();
  return {
    betweenMoves: [least, 3 * least],
    leastPart: 0.4 + 0.5 * random(),
    betweenSnapshots: 1 + Math.floor(3 * random()),
  };
}

/** Starts a new mirror of a drawn market. */
async function begun(seed: number, random: () => number): Promise<{ market: Lively; day: Day }> {
  await rig.reset({ seed, skus: 60, liveShare: 0.1, ghostShare: 0, unlistedShare: 0 });
  await rig.time.set(nextMidnight());
  const presence = connect(rig.url, { max: 1, name: 'catalog-mirror instance' });
  await presence`
    insert into catalog_internal.instances
    select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
  onTestFinished(() => presence.end());
  const market = new Lively(rig, drawn(random), seed);
  const day = new Day(rig, 'info', { DELTA_INTERVAL: '1m' });
  Object.assign(day, { market: { moves: 0, everyMs: Infinity }, wakeMs: 15_000 });
  day.weather.answer = market.answer;
  return { market, day };
}

const seeds = Array.from({ length: runs(2) }, (_, n) => n + 1);

test.each(seeds)(
  'snapshot prices of market %s are right about as often as p_right claims after 15 minutes',
  async (seed) => {
    const random = seeded(seed * 7919);
    const { market, day } = await begun(seed, random);
    const claims: Claims[] = [];
    for (let minute = 0; minute < 35; minute += 1) {
      await day.pass((0.5 + random()) / 60);
      await rig.time.pass(Math.ceil(15_000 * random()));
      if (minute >= 15) claims.push(await market.judge());
    }
    const sum = (of: (each: Claims) => number) => claims.reduce((all, each) => all + of(each), 0);
    const prices = sum((each) => each.prices);
    expect(prices).toBeGreaterThan(1000);
    const [claimed, right] = [sum((each) => each.claimed) / prices, sum((each) => each.right) / prices];
    expect(claimed - right).toBeLessThan(MOST_TOO_HIGH);
    // Nor does p_right claim too little.
    expect(right - claimed).toBeLessThan(MOST_TOO_LOW);
  },
  400_000,
);
