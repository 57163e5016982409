import { expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { readLatePrices } from '../../src/store/trust/beliefs.ts';
import { Day } from './day.ts';
import { readActionable } from './mirror.ts';
import { sayAll } from './progress.ts';
import { QUIET } from './quiet.ts';
import { useRig } from './rig.ts';
import { nextMidnight } from './time.ts';

/*
 * A partner that reports new prices before it answers with them, without a single error. Sweeps are half a day
 * apart, so that nothing else finds those prices.
 */

const rig = useRig(() => Promise.resolve());

const sorted = (prices: Readonly<Record<string, unknown>>) =>
  JSON.stringify(
    Object.entries(prices)
      .filter(([, price]) => price !== null)
      .toSorted(([a], [b]) => a.localeCompare(b)),
  );

/** Begins a day with a filled mirror. */
async function begun(options: object): Promise<Day> {
  await rig.reset({ seed: 7, skus: 120, liveShare: 0.2, ...options });
  await rig.time.set(nextMidnight());
  const presence = connect(rig.url, { max: 1, name: 'catalog-mirror instance' });
  await presence`
    insert into catalog_internal.instances
    select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
  onTestFinished(() => presence.end());
  const day = new Day(rig, 'info', { DELTA_INTERVAL: '5m', SWEEP_MIN_AGE: '12h' });
  await day.pass(0.7);
  return day;
}

/** Covered SKUs with wrong actionable prices, and since when the partner has had the right ones. */
class WrongPrices {
  #since = new Map<string, number>();

  /** Returns for how long the oldest of them has been wrong, in minutes. */
  async longest(): Promise<number> {
    const { rows, at } = await readActionable(rig.sql);
    const truth = rig.partner.world.truth();
    const wrong = rows.flatMap(({ sku, covered, prices }) => {
      const is = truth.get(sku);
      const right = sorted(is?.answer === 'record' ? is.sizeMap : {});
      return covered && right !== sorted(prices) ? [`${sku} ${right}`] : [];
    });
    this.#since = new Map(wrong.map((each) => [each, this.#since.get(each) ?? at]));
    return Math.max(0, ...[...this.#since.values()].map((since) => (at - since) / 60_000));
  }
}

/** Counts repeated refreshes, and those that found a change. */
async function secondLooks(): Promise<{ looks: number; found: number }> {
  const [row] = await rig.sql<[{ looks: number; found: number }]>`
    select coalesce(sum(looks), 0)::int as looks, coalesce(sum(looks - "right"), 0)::int as found
    from catalog_internal.calibration_hours where cohort = 'again'`;
  return row;
}

test('behind a cache of ten minutes no price is wrong and actionable for more than half an hour', async () => {
  const day = await begun({});
  const wrong = new WrongPrices();
  QUIET['prices are a cache for ten minutes']?.(day, rig, () => 0);
  for (let n = 0; n < 20; n += 1) {
    await day.pass(5 / 60);
    expect(await wrong.longest(), `after ${5 * n} minutes`).toBeLessThanOrEqual(30);
  }
  expect((await secondLooks()).found).toBeGreaterThan(10);
  expect(day.lines.map(({ event }) => event)).toContain('late-prices.began');
  expect((await sayAll(day)).reasons.map(({ code }) => code)).toEqual(['prices-lag']);
}, 400_000);

test('a correct partner whose SKUs all move every ten minutes is not reported for lagging prices', async () => {
  const day = await begun({ skus: 300 });
  day.market = { moves: 30, everyMs: 60_000 };
  for (let n = 0; n < 12; n += 1) {
    await day.pass(0.25);
    expect(await readLatePrices(rig.sql), `after ${n + 1} quarters of an hour`).toBeNull();
  }
  const [{ confirmed }] = await rig.sql<[{ confirmed: number }]>`
    select reports_confirmed::int as confirmed from catalog.delta_audit`;
  expect(confirmed).toBeGreaterThan(2000);
  expect(day.lines.map(({ event }) => event)).not.toContain('late-prices.began');
}, 400_000);

test('a partner that reports needlessly is asked again for about sixty SKUs, then for a twentieth', async () => {
  const day = await begun({ noopShare: 3 });
  await day.pass(2);
  const early = await secondLooks();
  expect(early.looks).toBeGreaterThan(40);
  await day.pass(2);
  const late = await secondLooks();
  const [{ unchanged }] = await rig.sql<[{ unchanged: number }]>`
    select sum("right")::int as unchanged from catalog_internal.calibration_hours where cohort = 'reported'`;
  expect(unchanged).toBeGreaterThan(200);
  expect(late.looks).toBeLessThan(120);
  expect(day.lines.map(({ event }) => event)).not.toContain('late-prices.began');
  expect(late.looks - early.looks).toBeLessThanOrEqual(10);
}, 400_000);
