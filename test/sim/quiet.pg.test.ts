import { expect, test } from 'vitest';
import type { ReasonCode } from '../../src/status/reason.ts';
import { connect } from '../../src/store/connection/db.ts';
import { seeded } from '../hostile/random.ts';
import { Day } from './day.ts';
import { type Actionable, readActionable } from './mirror.ts';
import { sayAll } from './progress.ts';
import { LEARNED, QUIET } from './quiet.ts';
import { useRig } from './rig.ts';
import { nextMidnight } from './time.ts';

/*
 * The partner answers everything, well-formed and without an error, and something is wrong all the same for two hours
 * and a half. However it is: a price whose moves the catalog reports is not wrong and actionable for long, what lasts
 * is told, and an hour and a quarter after its end all is well again.
 */

const rig = useRig(() => Promise.resolve());

interface Promised {
  /** For so many minutes a price whose moves are reported may be wrong and actionable. */
  readonly wrong: number;
  /** What is told of it, from which minute on at the latest; null: nothing has to be. */
  readonly told: readonly [ReasonCode, number] | null;
}

const MINUTES = 150;
/** A report comes five minutes after a move at most, and its refresh at the next trigger; one may fail. */
const SOON = 25;
/** All SKUs of so small a catalog are swept within SWEEP_MIN_AGE. */
const SWEPT = 45;
/** The next sweep may find the same, and the one after that does not. */
const SWEPT_TWICE = 75;
/** CATALOG_CHECK_INTERVAL, and the time in which a delta is late. */
const CHECKED = 110;
/** The delta is found behind again, after a manifest has taken its place. */
const BEHIND_AGAIN = 135;

const PROMISED: Readonly<Record<string, Promised>> = {
  'the delta stands still': { wrong: CHECKED, told: ['delta-behind', BEHIND_AGAIN] },
  'every second delta stands still': { wrong: SOON, told: null },
  'the delta names no further snapshot': { wrong: SOON, told: ['delta-behind', BEHIND_AGAIN] },
  'the delta reports every SKU': { wrong: SOON, told: null },
  'the delta reports nothing': { wrong: SWEPT, told: null },
  'the delta leaves out three reports of four': { wrong: SWEPT, told: null },
  'the delta never reports three SKUs of four': { wrong: SWEPT, told: null },
  'the catalog stands still': { wrong: SWEPT, told: null },
  'live SKUs are in errors': { wrong: SOON, told: ['live-outage', 30] },
  // One that is only listed as live is computed all the same: see standstill.pg.test.ts.
  'live SKUs are deferred': { wrong: SOON, told: null },
  'live SKUs are not found': { wrong: SOON, told: ['mass-move', 60] },
  'live SKUs are passed over': { wrong: SOON, told: ['live-outage', 30] },
  'some SKUs are passed over': { wrong: SOON, told: ['skus-failing', 60] },
  'calls are cut': { wrong: SOON, told: null },
  // Two answers that agree are believed, till a sweep is doubted with the mass of them.
  'prices are gone': { wrong: SWEPT_TWICE, told: ['mass-move', 60] },
  'prices are in satang': { wrong: SOON, told: ['mass-move', 15] },
  'all sizes have the lowest price': { wrong: SOON, told: ['mass-move', 30] },
  // Nothing tells these prices from the old ones but that they have moved: two answers that agree are believed.
  'sizes have the prices of others': { wrong: MINUTES, told: ['mass-move', 30] },
  // One that never gives the new price is like reports that are needless.
  'prices are a cache': { wrong: MINUTES, told: null },
  'prices are a cache for ten minutes': { wrong: SWEPT, told: ['prices-lag', CHECKED] },
};

/** What is counted of the last hour is forgotten. */
const RECOVERED = 90;
const EVERY = 5;

/** SKUs of these whose prices are not those of the world. */
function wrongOf(rows: readonly Actionable[]): string[] {
  const truth = rig.partner.world.truth();
  const offers = (sizes: Record<string, number | null>) =>
    JSON.stringify(
      Object.entries(sizes)
        .filter(([, price]) => price !== null)
        .toSorted(([a], [b]) => a.localeCompare(b)),
    );
  return rows
    .filter(({ sku, covered, prices }) => covered && offers(truth.get(sku)?.sizeMap ?? {}) !== offers(prices))
    .map(({ sku }) => sku);
}

/** For how long SKUs have been wrong, in minutes. */
class Wrong {
  readonly #since = new Map<string, number>();

  longest(skus: readonly string[], minute: number): number {
    for (const sku of [...this.#since.keys()].filter((known) => !skus.includes(known)))
      this.#since.delete(sku);
    for (const sku of skus) this.#since.set(sku, this.#since.get(sku) ?? minute);
    return Math.max(0, ...[...this.#since.values()].map((since) => minute - since));
  }
}

test('each is expected to be told, or not', () => {
  expect(Object.keys(PROMISED)).toEqual(Object.keys(QUIET));
});

test.each(Object.entries(PROMISED))(
  '%s: no reported price is wrong and actionable for long, it is told, and it ends',
  async (name, { wrong, told }) => {
    await rig.reset({ seed: 7, skus: 120, liveShare: 0.2 });
    await rig.time.set(nextMidnight());
    const day = new Day(rig, 'info');
    const presence = connect(rig.url, { max: 1, name: 'catalog-mirror instance' });
    await presence`
      insert into catalog_internal.instances
      select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
    try {
      await day.pass(1);
      const end = QUIET[name]?.(day, rig, seeded(7));
      const found = new Wrong();
      let [longest, toldAt] = [0, Infinity];
      for (let minute = EVERY; minute <= MINUTES; minute += EVERY) {
        await day.pass(EVERY / 60);
        longest = Math.max(longest, found.longest(wrongOf((await readActionable(rig.sql)).rows), minute));
        const { reasons } = await sayAll(day);
        if (reasons.some(({ code }) => code === told?.[0])) toldAt = Math.min(toldAt, minute);
      }
      expect(longest).toBeLessThanOrEqual(wrong);
      if (told !== null) expect(toldAt).toBeLessThanOrEqual(told[1]);
      end?.();
      await day.pass(RECOVERED / 60);
      const { reasons } = await sayAll(day);
      expect(reasons.filter(({ code }) => !LEARNED.has(code))).toEqual([]);
    } finally {
      await presence.end();
    }
  },
  400_000,
);
