import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { Day } from './day.ts';
import { readActionable } from './mirror.ts';
import { sayAll } from './progress.ts';
import { QUIET } from './quiet.ts';
import { useRig } from './rig.ts';
import { nextMidnight } from './time.ts';

/*
 * The partner answers without an error, but nothing moves. All five reports say so as long as it lasts, and what
 * was learned from it does no harm once it is over.
 */

const rig = useRig(() => Promise.resolve());

const FILL_MINUTES = 72;
const SPELL_MINUTES = 150;
/** When the delta is behind again, after the first manifest replaced it. */
const BEHIND_AGAIN = 135;
/** The time to notice a newer snapshot and merge its manifest. */
const MANIFEST_MINUTES = 20;
/** This long after the end nothing is reported any more. */
const RECOVERED_MINUTES = 75;

interface At {
  readonly minute: number;
  readonly states: readonly string[];
  readonly codes: readonly string[];
  readonly covered: number;
}

/**
 * Records every five minutes, during a spell and after it, what is reported and how many covered SKUs are
 * actionable.
 */
async function standstill(name: string, spellMinutes = SPELL_MINUTES): Promise<{ before: number; at: At[] }> {
  // No SKU is computed that is only listed as live.
  await rig.reset({ seed: 7, skus: 120, liveShare: 0.2, mislistedShare: 0 });
  await rig.time.set(nextMidnight());
  const day = new Day(rig, 'info', { DELTA_INTERVAL: '5m', SWEEP_MIN_AGE: '30m' });
  const presence = connect(rig.url, { max: 1, name: 'catalog-mirror instance' });
  try {
    await presence`
      insert into catalog_internal.instances
      select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
    await day.pass(FILL_MINUTES / 60);
    const covered = async () => (await readActionable(rig.sql)).rows.filter((row) => row.covered).length;
    const before = await covered();
    const end = QUIET[name]?.(day, rig, () => 0);
    if (end === undefined) throw new Error(`there is no ${name}`);
    const at: At[] = [];
    for (let minute = 5; minute <= spellMinutes + RECOVERED_MINUTES; minute += 5) {
      await day.pass(5 / 60);
      const { states, reasons } = await sayAll(day);
      const codes = reasons.map(({ code }) => code);
      at.push({ minute, states: Object.values(states), codes, covered: await covered() });
      if (minute === spellMinutes) end();
    }
    return { before, at };
  } finally {
    await presence.end();
  }
}

const says = (code: string) => (at: At) =>
  at.codes.some((each) => each === code) && at.states.every((state) => state === 'degraded');

function expectRecovered({ before, at }: { before: number; at: readonly At[] }): void {
  const last = at.at(-1);
  expect(before).toBeGreaterThan(50);
  expect(last).toMatchObject({ codes: [], states: at[0]?.states.map(() => 'healthy') });
  expect(last?.covered).toBeGreaterThanOrEqual(0.9 * before);
}

const longestRun = (of: readonly boolean[]): number =>
  of.reduce(
    ({ longest, run }, is) => ({ longest: Math.max(longest, is ? run + 1 : 0), run: is ? run + 1 : 0 }),
    {
      longest: 0,
      run: 0,
    },
  ).longest;

test('a delta that stands still is reported until it moves, and the manifest route replaces it', async () => {
  const found = await standstill('the delta stands still');
  // Behind after an hour and a half, until a manifest has replaced it; then again, as long as newer ones come.
  const spell = found.at.filter(({ minute }) => minute >= BEHIND_AGAIN && minute <= SPELL_MINUTES);
  expect(spell.filter((at) => !says('delta-behind')(at))).toEqual([]);
  // Each newer snapshot comes as a manifest. Until then, prices that it may have moved are not actionable.
  const away = found.at.map(({ covered }) => covered <= found.before / 2);
  expect(away).toContain(true);
  expect(longestRun(away) * 5).toBeLessThanOrEqual(MANIFEST_MINUTES);
  expect(found.at.filter(({ minute }) => minute >= SPELL_MINUTES + 15).filter(says('delta-behind'))).toEqual(
    [],
  );
  expectRecovered(found);
}, 400_000);

test('a catalog that stands still has no lasting effect', async () => {
  expectRecovered(await standstill('the catalog stands still'));
}, 400_000);

test('live SKUs that are all deferred are reported after half an hour, until they are answered', async () => {
  const found = await standstill('live SKUs are deferred', 80);
  const told = found.at.filter(says('live-deferred')).map(({ minute }) => minute);
  expect(told[0]).toBeGreaterThanOrEqual(30);
  expect(told).toContain(80);
  expect(told.filter((minute) => minute > 80)).toEqual([]);
  expectRecovered(found);
}, 400_000);
