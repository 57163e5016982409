import { assert, boolean, constantFrom, integer, option, property, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_CEILING } from '../../src/store/live/limits.ts';
import type { LivePlan } from '../../src/store/live/live.ts';
import { learn } from '../../src/sync/live/learn.ts';
import { QUIET_PLAN } from '../support/live-plan.ts';
import { settingsWith } from '../support/settings.ts';

const MINUTE = 60_000;
const NOW = 1000 * MINUTE;
const SETTINGS = settingsWith({});
const NONE = { asked: 0, answered: 0, deferred: 0 };
const QUIET: LivePlan = { ...QUIET_PLAN, computed: 200, best: 5, now: NOW };
const TIMES = { askedAt: NOW, answeredAt: NOW + 1000 };
const CEILING = { ...NO_CEILING, step: 4, perMinute: 200, since: NOW - 2 * MINUTE };
const DURING_INCIDENT: LivePlan = {
  ...QUIET,
  incident: { because: 'deferrals', since: NOW - 30 * MINUTE, triedAt: NOW - 10 * MINUTE },
};

const shown = (asked: number, answered: number, deferred = asked - answered) => ({
  asked,
  answered,
  deferred,
});
/** Learns from a usual call: five live SKUs and 95 others, all answered unless given. */
function taught(
  options: {
    plan?: Partial<LivePlan>;
    budget?: number;
    trial?: boolean;
    live?: typeof NONE;
    snapshot?: typeof NONE;
  } = {},
) {
  const { plan = {}, budget = 5, trial = false, live = shown(5, 5), snapshot = shown(95, 95) } = options;
  const tried = {
    asked: live.asked + snapshot.asked,
    answered: live.answered + snapshot.answered,
    deferred: 0,
  };
  return learn(
    { plan: { ...QUIET, ...plan }, budget, callSkus: 100, trial },
    { live, snapshot, tried, ...TIMES },
    SETTINGS,
  );
}

describe('a call that was answered in full', () => {
  test('is remembered, and raises the budget a little', () => {
    expect(taught()).toEqual({
      lesson: {
        call: { computed: 5, deferred: 0, snapshotAsked: 95, snapshotDeferred: 0 },
        budget: 5.01,
        ceiling: null,
        ceilingStep: 0,
        trial: false,
        incident: null,
      },
      events: [],
      incidentEvent: null,
    });
  });

  test('without live SKUs teaches nothing', () => {
    const nothing = { call: null, budget: null, ceiling: null, ceilingStep: 0, trial: false, incident: null };
    expect(taught({ live: NONE }).lesson).toEqual(nothing);
    // Errors show nothing of what was computed.
    expect(taught({ live: shown(4, 0, 0), snapshot: shown(95, 0, 0) }).lesson).toEqual(nothing);
  });

  test('logs the budget when it allows one SKU more', () => {
    expect(taught({ budget: 5.98 }).events).toEqual([]);
    expect(taught({ budget: 5.995, live: shown(5, 5) }).events).toEqual([
      { event: 'live-budget.learned', budget: 6 },
    ]);
  });
});

describe('live SKUs that were deferred', () => {
  test('lower the budget, and the new one is logged', () => {
    const { lesson, events } = taught({ live: shown(5, 3), plan: { best: 3 } });
    expect(lesson).toMatchObject({ budget: 4, ceiling: null, call: { computed: 3, deferred: 2 } });
    expect(events).toEqual([{ event: 'live-budget.learned', budget: 4 }]);
  });

  test('if none was answered within the usual count, raise suspicion of a ceiling and keep the budget', () => {
    const { lesson, events } = taught({ live: shown(5, 0) });
    expect(lesson).toMatchObject({
      budget: null,
      ceiling: { perMinute: null, failedAt: NOW },
      ceilingStep: 0,
    });
    expect(events).toEqual([]);
  });

  test('under a known ceiling, in a call below the budget, do not change the budget', () => {
    const { lesson, events } = taught({ live: shown(3, 2), plan: { ceiling: CEILING, best: 2 } });
    expect(lesson).toMatchObject({ budget: null, ceiling: { blockedAt: NOW }, ceilingStep: 4 });
    expect(events).toEqual([]);
  });

  test('beside deferred SKUs that were taken for snapshot-priced do not suggest a ceiling', () => {
    expect(taught({ live: shown(5, 0), snapshot: shown(95, 94) }).lesson.ceiling).toBeNull();
  });
});

describe('the ceiling is logged', () => {
  test('when it was measured and differs from before', () => {
    const blocked = { ...CEILING, cycleFrom: NOW - 2 * MINUTE, blockedAt: NOW - MINUTE, failedAt: NOW - 500 };
    const { lesson, events } = taught({ live: shown(1, 1), plan: { ceiling: blocked } });
    expect(lesson.ceiling).toMatchObject({ blockedAt: null, alike: 0 });
    expect(events).toEqual([{ event: 'live-ceiling.learned', perMinute: 100 }]);
  });

  test('not when it is about the same as before', () => {
    const blocked = { ...CEILING, cycleFrom: NOW - 2 * MINUTE, blockedAt: NOW - 1000, failedAt: NOW - 500 };
    expect(taught({ live: shown(1, 1), plan: { ceiling: blocked } }).events).toEqual([]);
  });

  test('when it has grown beyond what all calls can ask, and is forgotten', () => {
    const { lesson, events } = taught({ plan: { ceiling: { ...CEILING, since: NOW - 60 * MINUTE } } });
    expect(lesson.ceiling).toEqual({ ...NO_CEILING, step: 5 });
    expect(events).toEqual([{ event: 'live-ceiling.learned', perMinute: null }]);
  });
});

describe('an incident', () => {
  test('is not started by one call: its deferrals are logged, and weighed with those of others', () => {
    const { lesson, incidentEvent } = taught({ live: NONE, snapshot: shown(100, 5) });
    expect(lesson).toMatchObject({ call: { snapshotAsked: 100, snapshotDeferred: 95 }, incident: null });
    expect([lesson.budget, incidentEvent]).toEqual([null, null]);
  });

  test('ends with a trial call that is answered, and with no other', () => {
    const answered = { live: shown(15, 15), snapshot: shown(5, 1), plan: DURING_INCIDENT };
    expect(taught(answered).lesson).toMatchObject({ trial: false, incident: null });
    const { lesson, incidentEvent } = taught({ ...answered, trial: true });
    expect(lesson).toMatchObject({ trial: true, incident: { from: 'deferrals', to: null } });
    expect(incidentEvent).toEqual({
      event: 'incident.ended',
      because: 'deferrals',
      minutes: 30,
      kind: 'trial',
      asked: 20,
      answered: 16,
    });
  });

  test('continues after a trial call that was mostly deferred, and is tried again later', () => {
    const { lesson, incidentEvent } = taught({
      plan: DURING_INCIDENT,
      trial: true,
      live: NONE,
      snapshot: shown(20, 14),
    });
    expect(lesson).toMatchObject({ trial: true, incident: null });
    expect(incidentEvent).toBeNull();
  });
});

test('unlisted SKUs, computed live and deferred, are no evidence of an incident', () => {
  const known = { plan: QUIET, budget: 20, callSkus: 100, trial: false };
  const seen = { live: shown(5, 5), snapshot: shown(95, 5), ...TIMES };
  const { lesson } = learn(known, { ...seen, listed: shown(5, 5) }, SETTINGS);
  expect(lesson.call).toMatchObject({ snapshotAsked: 5, snapshotDeferred: 0 });
  expect(lesson.budget).toBeNull();
  expect(learn(known, seen, SETTINGS).lesson.call).toMatchObject({ snapshotAsked: 95, snapshotDeferred: 90 });
});

test('whatever a call shows, the budget stays within its bounds and nothing is logged that is not stored', () => {
  const anyShown = record({
    answered: integer({ min: 0, max: 50 }),
    deferred: integer({ min: 0, max: 50 }),
    erred: integer({ min: 0, max: 5 }),
  });
  const anyPlan = record({
    perMinute: option(integer({ min: 5, max: 900 })),
    since: integer({ min: 0, max: NOW }),
    blockedAt: option(integer({ min: 0, max: 2 * NOW })),
    failedAt: option(integer({ min: 0, max: 2 * NOW })),
    partlyDeferred: integer({ min: 0, max: 20 }),
    computed: integer({ min: 0, max: 900 }),
    best: integer({ min: 0, max: 50 }),
    because: option(constantFrom('deferrals' as const, 'live-count' as const)),
  });
  assert(
    property(
      anyShown,
      anyShown,
      anyPlan,
      integer({ min: 4, max: 400 }),
      boolean(),
      (l, s, drawn, budget, trial) => {
        const { because, computed, best, partlyDeferred, ...ceiling } = drawn;
        const plan: LivePlan = {
          ...QUIET,
          computed,
          best,
          partlyDeferred,
          ceiling: { ...NO_CEILING, ...ceiling },
          incident: because === null ? null : { because, since: 0, triedAt: 0 },
        };
        const cohort = ({ answered, deferred, erred }: typeof l) =>
          shown(answered + deferred + erred, answered, deferred);
        const { lesson, events, incidentEvent } = learn(
          { plan, budget: budget / 4, callSkus: 100, trial },
          { live: cohort(l), snapshot: cohort(s), ...TIMES },
          SETTINGS,
        );
        expect(lesson.budget ?? 1).toBeGreaterThanOrEqual(1);
        expect(lesson.budget ?? 1).toBeLessThanOrEqual(100);
        expect(lesson.trial).toBe(trial);
        expect(incidentEvent === null).toBe(lesson.incident === null);
        const told = events.map(({ event }) => event);
        if (told.includes('live-budget.learned')) expect(lesson.budget).not.toBeNull();
        if (told.includes('live-ceiling.learned')) expect(lesson.ceiling).not.toBeNull();
        expect(lesson.call === null).toBe(l.answered + l.deferred + s.deferred === 0);
      },
    ),
  );
});
