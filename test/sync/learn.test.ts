import { assert, boolean, constantFrom, integer, option, property, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LivePlan } from '../../src/store/live.ts';
import { learn } from '../../src/sync/live/learn.ts';
import { settingsWith } from '../support/settings.ts';

const MINUTE = 60_000;
const NOW = 1000 * MINUTE;
const SETTINGS = settingsWith({});
const NONE = { asked: 0, answered: 0, deferred: 0 };
const QUIET: LivePlan = {
  refreshThreshold: null,
  maxIntervalMinutes: null,
  earlyMinutes: null,
  unsolved: false,
  incident: null,
  ceilingPerMinute: null,
  ceilingAt: 0,
  computed: 200,
  best: 5,
  underWay: 5,
  snapshotDeferrals: { asked: 0, deferred: 0 },
  now: NOW,
};
const DURING_INCIDENT: LivePlan = {
  ...QUIET,
  incident: { because: 'deferrals', since: NOW - 30 * MINUTE, triedAt: NOW - 10 * MINUTE },
};

const shown = (asked: number, answered: number, deferred = asked - answered) => ({
  asked,
  answered,
  deferred,
});
/** A usual call: five live SKUs and 95 others, all answered where not said. */
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
  return learn({ plan: { ...QUIET, ...plan }, budget, trial }, { live, snapshot, tried }, SETTINGS);
}

describe('a call that was answered in full', () => {
  test('is remembered, and has a little more tried', () => {
    expect(taught()).toEqual({
      lesson: {
        call: { computed: 5, deferred: 0, snapshotAsked: 95, snapshotDeferred: 0 },
        budget: 5.01,
        ceiling: null,
        trial: false,
        incident: null,
      },
      events: [],
      incidentEvent: null,
    });
  });

  test('without live SKUs teaches nothing', () => {
    const nothing = { call: null, budget: null, ceiling: null, trial: false, incident: null };
    expect(taught({ live: NONE }).lesson).toEqual(nothing);
    // Errors say nothing of what was computed.
    expect(taught({ live: shown(4, 0, 0), snapshot: shown(95, 0, 0) }).lesson).toEqual(nothing);
  });

  test('tells of the budget when it allows one SKU more', () => {
    expect(taught({ budget: 5.98 }).events).toEqual([]);
    expect(taught({ budget: 5.995, live: shown(5, 5) }).events).toEqual([
      { event: 'live-budget.learned', budget: 6 },
    ]);
  });
});

describe('live SKUs that were deferred', () => {
  test('teach the budget, and told is what it has become', () => {
    const { lesson, events } = taught({ live: shown(5, 3), plan: { best: 3 } });
    expect(lesson).toMatchObject({ budget: 4, ceiling: null, call: { computed: 3, deferred: 2 } });
    expect(events).toEqual([{ event: 'live-budget.learned', budget: 4 }]);
  });

  test('all of them, within what calls had answered: a ceiling is suspected at first, and the budget stands', () => {
    const { lesson, events } = taught({ live: shown(5, 0) });
    expect(lesson).toMatchObject({ budget: null, ceiling: { perMinute: null, at: NOW } });
    expect(events).toEqual([]);
  });

  test('again within a minute: the ceiling is what was computed in the last minute, a little less', () => {
    const { lesson, events } = taught({ live: shown(5, 0), plan: { ceilingAt: NOW - MINUTE } });
    expect(lesson.ceiling).toEqual({ perMinute: 198, at: NOW });
    expect(events).toEqual([{ event: 'live-ceiling.learned', perMinute: 198 }]);
  });

  test('beside deferred SKUs that were taken for snapshot-priced, or beyond what calls had answered, say nothing of a ceiling', () => {
    const plan = { ceilingAt: NOW - MINUTE };
    expect(taught({ live: shown(5, 0), snapshot: shown(95, 94), plan }).lesson.ceiling).toBeNull();
    expect(taught({ live: shown(6, 0), plan }).lesson.ceiling).toBeNull();
  });
});

test('a ceiling that has grown beyond what all calls could ask is forgotten, and told so', () => {
  const { lesson, events } = taught({ plan: { ceilingPerMinute: 200, ceilingAt: NOW - 60 * MINUTE } });
  expect(lesson.ceiling).toEqual({ perMinute: null, at: 0 });
  expect(events).toEqual([{ event: 'live-ceiling.learned', perMinute: null }]);
});

describe('an incident', () => {
  const deferred = { live: NONE, snapshot: shown(100, 5) };

  test('begins when this call and recent ones together had half of enough SKUs deferred', () => {
    expect(
      taught({ ...deferred, plan: { snapshotDeferrals: { asked: 199, deferred: 190 } } }).lesson.incident,
    ).toBeNull();
    const { lesson, incidentEvent } = taught({
      ...deferred,
      plan: { snapshotDeferrals: { asked: 200, deferred: 190 } },
    });
    expect(lesson).toMatchObject({ incident: { from: null, to: 'deferrals' }, budget: null });
    expect(incidentEvent).toEqual({
      event: 'incident.began',
      because: 'deferrals',
      minutes: 0,
      kind: 'deferrals',
      asked: 300,
      deferred: 285,
    });
  });

  test('does not begin from earlier calls when this one deferred nothing that was taken for snapshot-priced', () => {
    const plan = { snapshotDeferrals: { asked: 1000, deferred: 1000 } };
    expect(taught({ plan }).lesson.incident).toBeNull();
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

  test('goes on after a trial call that was mostly deferred, and is tried again later', () => {
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

test('whatever a call shows: the budget stays within its bounds, and nothing is told that is not stored', () => {
  const anyShown = record({
    answered: integer({ min: 0, max: 50 }),
    deferred: integer({ min: 0, max: 50 }),
    erred: integer({ min: 0, max: 5 }),
  });
  const anyPlan = record({
    ceilingPerMinute: option(integer({ min: 5, max: 900 })),
    ceilingAt: integer({ min: 0, max: NOW }),
    computed: integer({ min: 0, max: 900 }),
    best: integer({ min: 0, max: 50 }),
    asked: integer({ min: 0, max: 500 }),
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
        const { asked, because, ...rest } = drawn;
        const plan: LivePlan = {
          ...QUIET,
          ...rest,
          snapshotDeferrals: { asked, deferred: Math.floor(asked * 0.9) },
          incident: because === null ? null : { because, since: 0, triedAt: 0 },
        };
        const cohort = ({ answered, deferred, erred }: typeof l) =>
          shown(answered + deferred + erred, answered, deferred);
        const { lesson, events, incidentEvent } = learn(
          { plan, budget: budget / 4, trial },
          { live: cohort(l), snapshot: cohort(s) },
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
