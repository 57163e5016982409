import {
  array,
  assert,
  asyncProperty,
  constant,
  constantFrom,
  integer,
  oneof,
  option,
  record,
} from 'fast-check';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { Pacer } from '../../src/pace/permit.ts';
import { noteClock, putClockRight } from '../../src/store/clock.ts';
import { pauseRequests, resumeRequests } from '../../src/store/sellers/pause.ts';
import { useStore } from '../store/support.ts';
import { setClockAhead } from '../support/movable-clock.ts';
import { runs } from '../support/soak.ts';

/*
 * Pauses, resumes, ends, restarts and wrong clocks in any order, compared with what a person would say. Time
 * passes in steps of ten minutes, and pauses last five minutes more or less than a multiple of that, so that the
 * seconds a run takes decide nothing.
 */

const MINUTE = 60_000;
const LIMITS = { maxPerWindow: 100_000, windowMs: 1000, backoffMs: 1000 };
const REPLICAS = 2;

const anyLength = option(
  integer({ min: 0, max: 9 }).map((tens) => (10 * tens + 5) * MINUTE),
  { nil: null },
);
const anyStep = oneof(
  record({ do: constant('pause' as const), forMs: anyLength }),
  record({ do: constant('resume' as const) }),
  record({ do: constant('pass' as const), tens: integer({ min: 1, max: 5 }) }),
  record({ do: constant('restart' as const), replica: integer({ min: 0, max: REPLICAS - 1 }) }),
  // The clock is ahead for a while, somebody acts meanwhile, and a daemon corrects what was dated by it.
  record({
    do: constant('wrong clock' as const),
    aheadMs: constantFrom(30 * MINUTE, 8 * 1440 * MINUTE),
    meanwhile: constantFrom<'pause' | 'resume' | 'nothing'>('pause', 'resume', 'nothing'),
    forMs: anyLength,
  }),
);

interface Step {
  readonly do: 'pause' | 'resume' | 'pass' | 'restart' | 'wrong clock';
  readonly forMs?: number | null;
  readonly tens?: number;
  readonly replica?: number;
  readonly meanwhile?: 'pause' | 'resume' | 'nothing';
  readonly aheadMs?: number;
}

/** What a person would say: when the pause ends, by a clock that is right. */
class Model {
  now = 0;
  until: number | null = 0;

  apply(step: Step): void {
    if (step.do === 'pass') this.now += (step.tens ?? 0) * 10 * MINUTE;
    const act = step.do === 'wrong clock' ? step.meanwhile : step.do;
    if (act === 'pause')
      this.until = step.forMs === null || step.forMs === undefined ? null : this.now + step.forMs;
    // By a clock that is ahead, a pause may be over already: then there is nothing to resume.
    const seenAt = this.now + (step.do === 'wrong clock' ? (step.aheadMs ?? 0) : 0);
    if (act === 'resume' && (this.until === null || this.until > seenAt)) this.until = this.now;
  }

  get paused(): boolean {
    return this.until === null || this.now < this.until;
  }
}

const WEEK_AHEAD = { do: 'wrong clock', aheadMs: 8 * 1440 * MINUTE, forMs: null } as const;
/** Tried each time: pauses set before or while the clock is ahead, with and without an end. */
const KNOWN: [Step[]][] = [
  [
    [
      { ...WEEK_AHEAD, meanwhile: 'pause', forMs: 5 * MINUTE },
      { do: 'pass', tens: 1 },
    ],
  ],
  [
    [
      { do: 'pause', forMs: 15 * MINUTE },
      { ...WEEK_AHEAD, meanwhile: 'nothing' },
      { do: 'pass', tens: 1 },
      { do: 'pass', tens: 1 },
    ],
  ],
  [[{ ...WEEK_AHEAD, meanwhile: 'pause' }, { do: 'pass', tens: 5 }, { do: 'resume' }]],
  [
    [
      { do: 'pause', forMs: null },
      { ...WEEK_AHEAD, meanwhile: 'resume' },
    ],
  ],
];

const store = useStore({ movableClock: true });

const start = (): Pacer => createPacer(store.sql, systemClock, LIMITS);

async function perform(step: Step, model: Model, replicas: Pacer[]): Promise<void> {
  const act = async (what: string | undefined, forMs: number | null = null) => {
    if (what === 'pause') await pauseRequests(store.sql, { forMs, by: 'ann@desk' });
    if (what === 'resume') await resumeRequests(store.sql, 'bob@desk');
  };
  if (step.do === 'restart') replicas[step.replica ?? 0] = start();
  if (step.do === 'wrong clock') {
    await noteClock(store.sql, { steady: true });
    await setClockAhead(store.sql, (model.now + (step.aheadMs ?? 0)) / 1000);
    await act(step.meanwhile, step.forMs);
    await setClockAhead(store.sql, model.now / 1000);
    await putClockRight(store.sql);
  } else await act(step.do, step.forMs);
}

test('permits are granted exactly while no pause holds, whatever happens to clocks and processes', async () => {
  await assert(
    asyncProperty(array(anyStep, { minLength: 1, maxLength: 12 }), async (steps: readonly Step[]) => {
      for (const table of ['pause', 'pace', 'pace_sends'])
        await store.sql.unsafe(`delete from catalog_internal.${table}`);
      await setClockAhead(store.sql, 0);
      await store.sql`update catalog_internal.clock set high_water = clock_timestamp(), set_back_seconds = null`;
      const model = new Model();
      const replicas = Array.from({ length: REPLICAS }, start);
      for (const step of steps) {
        model.apply(step);
        if (step.do === 'pass') {
          await setClockAhead(store.sql, model.now / 1000);
          await noteClock(store.sql, { steady: true });
        }
        await perform(step, model, replicas);
        for (const replica of replicas) {
          const acquired = await replica.acquire('delta', 15_000);
          const got = acquired.kind === 'wait' ? acquired.because : 'granted';
          expect({ got, step, now: model.now }).toMatchObject({ got: model.paused ? 'paused' : 'granted' });
        }
      }
    }),
    { numRuns: runs(25, 60), examples: KNOWN },
  );
});
