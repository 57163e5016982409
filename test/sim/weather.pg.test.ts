import { test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { seeded } from '../hostile/random.ts';
import { runs } from '../support/soak.ts';
import { Day } from './day.ts';
import { Progress, sayAll } from './progress.ts';
import { LEARNED, QUIET } from './quiet.ts';
import { type Rig, useRig } from './rig.ts';
import { nextMidnight } from './time.ts';
import { begin, beginNamed, CLOCKS, WEATHER } from './weather.ts';

/*
 * Every minute of days with various failures: either work continues, or readyz, `status`, status.json, the page
 * and the metric all report a problem. While nothing is wrong, none of them does.
 */

const rig = useRig(() => Promise.resolve());

/** Health must report within a minute that nothing moves. */
const KNOWN_WITHIN_MINUTES = 1;
/** This long after the last failure, retries included, nothing is reported any more. */
const RECOVERED_MINUTES = 90;
const FILL_MINUTES = 8;

async function presentDaemon(): Promise<() => Promise<void>> {
  const presence = connect(rig.url, { max: 1, name: 'catalog-mirror instance' });
  await presence`
    insert into catalog_internal.instances
    select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
  return () => presence.end();
}

const NOTHING: ReadonlySet<string> = new Set();

class Watched {
  readonly day: Day;
  readonly #progress: Progress;
  readonly #rig: Rig;
  #still = 0;

  constructor(watched: Rig) {
    this.#rig = watched;
    this.day = new Day(watched, 'info');
    this.#progress = new Progress(watched);
    this.day.onAnswer = (route, raw) => this.#progress.answered(route, raw);
  }

  /** Passes a minute, and checks what is reported at its end. */
  async minute(name: string, isQuiet: boolean, learned: ReadonlySet<string> = NOTHING): Promise<void> {
    await this.day.pass(1 / 60);
    const still = await this.#progress.standsStill();
    this.#still = still === null ? 0 : this.#still + 1;
    if (this.#still <= KNOWN_WITHIN_MINUTES && !isQuiet) return;
    const { states, reasons } = await sayAll(this.day);
    const said = JSON.stringify({ states, reasons: reasons.map(({ code, text }) => `${code}: ${text}`) });
    const at = new Date(this.#rig.time.at).toISOString();
    if (this.#still > KNOWN_WITHIN_MINUTES)
      for (const [who, state] of Object.entries(states))
        if (state === 'healthy')
          throw new Error(`${at}, ${name}: ${still ?? ''}, and ${who} says healthy: ${said}`);
    const isLearned = reasons.length > 0 && reasons.every(({ code }) => learned.has(code));
    if (isQuiet && !isLearned && Object.values(states).some((state) => state !== 'healthy'))
      throw new Error(`${at}: all is well, and yet ${said}`);
  }
}

async function filled(seed: number): Promise<Watched> {
  await rig.reset({ seed, skus: 120, liveShare: 0.1 });
  await rig.time.set(nextMidnight());
  const watched = new Watched(rig);
  for (let minute = 0; minute < FILL_MINUTES; minute += 1) await watched.minute('the initial load', false);
  return watched;
}

test.each([...Object.keys(WEATHER), ...Object.keys(CLOCKS)])(
  '%s, for forty minutes: work continues, or all five reports say that it does not',
  async (name) => {
    const watched = await filled(7);
    const leave = await presentDaemon();
    await beginNamed(watched.day, rig, () => 0, name);
    try {
      for (let minute = 0; minute < 40; minute += 1) await watched.minute(name, false);
    } finally {
      await leave();
    }
  },
  400_000,
);

test('an hour without failures: every report says healthy', async () => {
  const watched = await filled(11);
  const leave = await presentDaemon();
  try {
    for (let minute = 0; minute < 60; minute += 1) await watched.minute('quiet', true);
  } finally {
    await leave();
  }
}, 400_000);

test.each(Array.from({ length: runs(1) }, (_, n) => n + 1))(
  'days with random failures, seed %d',
  async (seed) => {
    const draw = seeded(seed);
    const watched = await filled(seed);
    const leave = await presentDaemon();
    try {
      let isLearned = false;
      for (let n = 0; n < 4; n += 1) {
        const spells = [await begin(watched.day, rig, draw)];
        const [minutes, quiet] = [1 + draw(60), draw(40)];
        const name = spells.map((spell) => spell.name).join(' and ');
        isLearned ||= spells.some((spell) => spell.name in QUIET);
        for (let minute = 0; minute < minutes; minute += 1)
          await watched.minute(`seed ${seed}, ${name}`, false);
        for (const { end } of spells) await end();
        for (let minute = 0; minute < quiet; minute += 1)
          await watched.minute(`seed ${seed}, after ${name}`, false);
      }
      for (let minute = 0; minute < RECOVERED_MINUTES; minute += 1)
        await watched.minute(`seed ${seed}, after all of it`, false);
      await watched.minute(`seed ${seed}, quiet`, true, isLearned ? LEARNED : NOTHING);
    } finally {
      await leave();
    }
  },
  400_000,
);
