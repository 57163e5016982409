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
 * The partner answers everything, well-formed and without an error, but something is wrong for two and a half
 * hours. In any case a reported price is not wrong and actionable for long, a lasting problem is reported, and an
 * hour and a half after its end all is well again.
 */

const rig = useRig(() => Promise.resolve());

interface Promised {
  /** For how many minutes a price whose moves are reported may be wrong and actionable. */
  readonly wrong: number;
  /** The reason that must be reported, and by which minute. Null if none has to be. */
  readonly told: readonly [ReasonCode, number] | null;
}

const MINUTES = 150;
/** A report comes at most five minutes after a move, and its refresh at the next trigger. One may fail. */
const SOON = 25;
/** All SKUs of such a small catalog are swept within SWEEP_MIN_AGE. */
const SWEPT = 45;
/** The next sweep may find the same wrong prices, but not the one after that. */
const SWEPT_TWICE = 75;
/** CATALOG_CHECK_INTERVAL, plus the time after which a delta is late. */
const CHECKED = 110;
/** When the delta is behind again, after a manifest has replaced it. */
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
  // SKUs that are only listed as live are computed all the same: see standstill.pg.test.ts.
  'live SKUs are deferred': { wrong: SOON, told: null },
  'live SKUs are not found': { wrong: SOON, told: ['mass-move', 60] },
  'live SKUs are passed over': { wrong: SOON, told: ['live-outage', 30] },
  'some SKUs are passed over': { wrong: SOON, told: ['skus-failing', 60] },
  'calls are cut': { wrong: SOON, told: null },
  // Two answers that agree are believed until so many of them put a sweep in doubt.
  'prices are gone': { wrong: SWEPT_TWICE, told: ['mass-move', 60] },
  'prices are in satang': { wrong: SOON, told: ['mass-move', 15] },
  'all sizes have the lowest price': { wrong: SOON, told: ['mass-move', 30] },
  // Only the move itself distinguishes these prices from the old ones: two answers that agree are believed.
  'sizes have the prices of others': { wrong: MINUTES, told: ['mass-move', 30] },
  // A cache that never gives the new price looks like needless reports.
  'prices are a cache': { wrong: MINUTES, told: null },
  'prices are a cache for ten minutes': { wrong: SWEPT, told: ['prices-lag', CHECKED] },
};

/** By then the counts of the last hour are forgotten. */
const RECOVERED = 90;
const EVERY = 5;

/** Returns covered SKUs among the rows whose prices differ from those of the world. */
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

/** Tracks for how many minutes SKUs have been wrong. */
class Wrong {
  readonly #since = new Map<string, number>();

  longest(skus: readonly string[], minute: number): number {
    for (const sku of [...this.#since.keys()].filter((known) => !skus.includes(known)))
      this.#since.delete(sku);
    for (const sku of skus) this.#since.set(sku, this.#since.get(sku) ?? minute);
    return Math.max(0, ...[...this.#since.values()].map((since) => minute - since));
  }
}

test('each quiet fault has an expectation', () => {
  expect(Object.keys(PROMISED)).toEqual(Object.keys(QUIET));
});

test.each(Object.entries(PROMISED))(
  '%s: no reported price is wrong and actionable for long, the fault is reported, and it ends',
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
