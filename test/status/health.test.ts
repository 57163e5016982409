import { describe, expect, test } from 'vitest';
import { judgeHealth, NO_OWN_FACTS, type OwnFacts, unreadyReason } from '../../src/status/health.ts';
import type { Status } from '../../src/status/status.ts';
import { FAILURES_BEFORE_PAUSE, type TaskState } from '../../src/store/ledger/tasks.ts';
import { CASES, factsOf, healthOf, mirrorWith, NOW } from './cases.ts';

test.each([
  ['empty database', 'broken', ['no-baseline'], 'no baseline yet, and no daemon is running;'],
  ['first manifest', 'filling', ['no-baseline'], 'no baseline yet: the manifest is being fetched'],
  [
    'first manifest failed',
    'broken',
    ['no-baseline'],
    'no baseline yet: the manifest failed 2 times in a row (unavailable);',
  ],
  ['first fill', 'filling', ['filling'], 'initial load: 5,000 of 20,000 SKUs fetched;'],
  ['healthy', 'healthy', [], ''],
  ['backing off', 'degraded', ['refused'], 'throttled or refused; a 403 since'],
  ['wrong secret suspected', 'broken', ['refused'], 'throttled or refused; a 403 since'],
  ['incident', 'degraded', ['incident'], 'incident: the whole catalog is live-priced, so prices get older;'],
  [
    'stale catalog',
    'degraded',
    ['chain-broken', 'catalog-stale', 'manifest-refused', 'delta-failing'],
    'the chain of deltas has been broken for 10m, and changes wait for a new manifest;',
  ],
  ['calls failing', 'degraded', ['calls-failing'], 'bulk calls are failing (5 in a row);'],
  ['daemon gone', 'degraded', ['stopped'], 'no daemon is running, the delta is overdue by 15m;'],
  ['daemon long gone', 'broken', ['stopped'], 'no daemon is running, the delta is overdue by 25.0h;'],
  ['refreshes late', 'degraded', ['backlog-late'], 'refreshes are up to 2.5h late;'],
] as const)('%s is %s', (name, state, codes, first) => {
  const judged = healthOf(CASES[name]);
  expect([judged.state, judged.reasons.map(({ code }) => code)]).toEqual([state, codes]);
  expect(judged.reasons[0]?.text ?? '').toMatch(new RegExp(`^${RegExp.escape(first)}`));
});

test('all reasons are given, the worst first, including what a daemon knows about itself', () => {
  const own: OwnFacts = {
    ...NO_OWN_FACTS,
    storeFailure: 'disk-full',
    refused: 'this daemon is refused',
    queues: 'the queues do not answer',
  };
  const { state, reasons } = judgeHealth(factsOf(CASES['stale catalog']), own);
  expect(state).toBe('broken');
  expect(reasons.map(({ code, level }) => `${level} ${code}`)).toEqual([
    'broken store-paused',
    'degraded queues-unavailable',
    'degraded own-credential',
    'degraded chain-broken',
    'degraded catalog-stale',
    'degraded manifest-refused',
    'degraded delta-failing',
  ]);
  expect(reasons[0]?.text).toBe(
    'Postgres rejects writes (disk-full); sync is paused and retries by itself; make room on its disk',
  );
});

test('filling is not degraded, and every worse state takes precedence over it', () => {
  const { tasks, ...rest } = CASES['first fill'];
  const failed = { ...rest, tasks, failedCalls: 5 };
  expect(healthOf(failed)).toMatchObject({
    state: 'degraded',
    reasons: [{ code: 'calls-failing' }, { code: 'filling' }],
  });
});

test.each([
  ['delta', 'network', 'delta-failing'],
  ['manifest', 'network', 'manifest-failing'],
  ['maintenance', 'unknown-skus', 'task-failing'],
])('a task is reported as soon as its last run failed: %s', (name, outcome, code) => {
  const { tasks, ...rest } = CASES.healthy;
  const failed = tasks.map((one) => (one.task === name ? { ...one, failures: 1, outcome } : one));
  expect(healthOf({ ...rest, tasks: failed })).toMatchObject({
    state: 'degraded',
    reasons: [{ code, text: expect.stringContaining(`${name} failed once (${outcome})`) as string }],
  });
});

test('while requests are rejected, only that is reported, not every task that fails', () => {
  const { tasks, ...rest } = CASES['backing off'];
  const failed = tasks.map((one) => ({ ...one, failures: 2, outcome: 'throttled-or-forbidden' }));
  expect(healthOf({ ...rest, tasks: failed }).reasons).toEqual(healthOf(CASES['backing off']).reasons);
});

describe('readiness', () => {
  test.each([
    ['empty database', 'no-baseline'],
    ['first manifest', 'no-baseline'],
    ['first manifest failed', 'no-baseline'],
    ['first fill', undefined],
    ['daemon long gone', undefined],
    ['wrong secret suspected', undefined],
  ] as const)('of %s: %s', (name, code) => {
    expect(unreadyReason(healthOf(CASES[name]))?.code).toBe(code);
  });

  test('reports Postgres before the queues, and the queues before the baseline', () => {
    const own = { ...NO_OWN_FACTS, queues: 'no queues' };
    expect(unreadyReason(judgeHealth(null, own))?.code).toBe('postgres-unavailable');
    expect(unreadyReason(judgeHealth(factsOf(CASES['first manifest']), own))?.code).toBe(
      'queues-unavailable',
    );
    expect(unreadyReason(judgeHealth(factsOf(CASES['first manifest failed']), own))?.code).toBe(
      'queues-unavailable',
    );
    expect(
      unreadyReason(judgeHealth(factsOf(CASES.healthy), { ...NO_OWN_FACTS, storeFailure: 'read-only' })),
    ).toBe(null);
  });
});

describe('mirrors that no daemon leaves behind', () => {
  const DAY = 86_400;
  const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
  const delta = (more: Partial<TaskState>) =>
    CASES.healthy.tasks.map((one) => (one.task === 'delta' ? { ...one, ...more } : one));
  const counted = (...skus: { state: string; count: number }[]) =>
    skus.map((row) => ({ priceSource: 'snapshot' as const, ...row }));

  test.each<[string, Status, string, string[]]>([
    ['no SKU at all', mirrorWith({ stats: { skus: [], due: [] } }), 'degraded', ['empty']],
    [
      'every SKU removed',
      mirrorWith({ stats: { skus: counted({ state: 'removed', count: 9 }), due: [] } }),
      'degraded',
      ['empty'],
    ],
    [
      'one SKU of a hundred never priced',
      mirrorWith({
        stats: { skus: counted({ state: 'priced', count: 99 }, { state: 'pending', count: 1 }) },
      }),
      'healthy',
      [],
    ],
    [
      'two of a hundred',
      mirrorWith({
        stats: { skus: counted({ state: 'priced', count: 98 }, { state: 'pending', count: 2 }) },
      }),
      'filling',
      ['filling'],
    ],
    [
      'ages below 0',
      mirrorWith({ stats: { due: [{ reason: 'sweep', count: 3, oldestAgeSeconds: -9 }] } }),
      'healthy',
      [],
    ],
    [
      'times in the future',
      mirrorWith({
        stats: { deltaCheckedAt: at(DAY), manifestAppliedAt: at(DAY) },
        sync: { deltaLate: true },
      }),
      'degraded',
      ['delta-late'],
    ],
    [
      'a clock that was set back by a day',
      mirrorWith({ tasks: delta({ nextAt: at(DAY) }) }),
      'broken',
      ['stopped'],
    ],
    [
      'a lease that no daemon holds',
      mirrorWith({ daemons: 0, tasks: delta({ running: true, nextAt: at(-DAY) }) }),
      'broken',
      ['stopped'],
    ],
    ['a delta overdue by a minute', mirrorWith({ tasks: delta({ nextAt: at(-60) }) }), 'healthy', []],
    ['by a second more', mirrorWith({ tasks: delta({ nextAt: at(-61) }) }), 'degraded', ['stopped']],
    [
      'without a daemon by a minute',
      mirrorWith({ daemons: 0, tasks: delta({ nextAt: at(-60) }) }),
      'healthy',
      [],
    ],
    [
      'and by a second more',
      mirrorWith({ daemons: 0, tasks: delta({ nextAt: at(-61) }) }),
      'degraded',
      ['stopped'],
    ],
    ['one put off by two hours', mirrorWith({ tasks: delta({ nextAt: at(7200) }) }), 'healthy', []],
    [
      'and by a second more than that',
      mirrorWith({ tasks: delta({ nextAt: at(7201) }) }),
      'broken',
      ['stopped'],
    ],
    ['a delta that runs', mirrorWith({ tasks: delta({ running: true, nextAt: at(-DAY) }) }), 'healthy', []],
    [
      'SKUs that are deferred or in error for long',
      mirrorWith({
        stats: {
          due: [
            { reason: 'deferred', count: 1, oldestAgeSeconds: DAY },
            { reason: 'error', count: 1, oldestAgeSeconds: DAY },
            { reason: 'sweep', count: 1, oldestAgeSeconds: 3600 },
          ],
        },
      }),
      'healthy',
      [],
    ],
    [
      'a swept SKU due for more than an hour',
      mirrorWith({ stats: { due: [{ reason: 'sweep', count: 1, oldestAgeSeconds: 3601 }] } }),
      'degraded',
      ['backlog-late'],
    ],
    [
      'no row of the delta',
      mirrorWith({ tasks: CASES.healthy.tasks.filter(({ task }) => task !== 'delta') }),
      'broken',
      ['task-missing'],
    ],
    ['no row of any task', mirrorWith({ tasks: [] }), 'broken', ['task-missing']],
    [
      'a delta last checked too long ago',
      mirrorWith({ stats: { deltaCheckedAt: at(-1801) }, sync: { deltaLate: true } }),
      'degraded',
      ['delta-late'],
    ],
    [
      'a delta never checked, soon after the baseline',
      mirrorWith({ stats: { deltaCheckedAt: null, manifestAppliedAt: at(-60) } }),
      'healthy',
      [],
    ],
    [
      'a delta never checked, long after the baseline',
      mirrorWith({
        stats: { deltaCheckedAt: null, manifestAppliedAt: at(-3600) },
        sync: { deltaLate: true },
      }),
      'degraded',
      ['delta-late'],
    ],
    [
      'a first manifest that nobody starts',
      mirrorWith({
        stats: { manifestAppliedAt: null },
        tasks: CASES.healthy.tasks.map((one) => ({ ...one, nextAt: at(-7200) })),
      }),
      'broken',
      ['stopped', 'no-baseline'],
    ],
  ])('%s', (_, status, state, codes) => {
    const judged = healthOf(status);
    expect([judged.state, judged.reasons.map(({ code }) => code)]).toEqual([state, codes]);
  });

  test('a count from before the first baseline says nothing about the catalog', () => {
    const status = mirrorWith({
      stats: { skus: [], due: [], countedAt: at(-10), ofManifest: null, manifestAppliedAt: at(-20) },
    });
    expect(healthOf(status)).toMatchObject({ state: 'filling', reasons: [{ code: 'filling' }] });
  });

  test('occasional failed calls do not change the state, and a series of them does', () => {
    const after = (failedCalls: number) => judgeHealth({ ...factsOf(CASES.healthy), failedCalls }).state;
    expect(after(FAILURES_BEFORE_PAUSE - 1)).toBe('healthy');
    expect(after(FAILURES_BEFORE_PAUSE)).toBe('degraded');
  });

  test('a SKU that Postgres does not accept is named, with what rejects it', () => {
    const notStored = { skus: 1200, last: 'DD1391-100', sample: 'SQLSTATE 23514, by mine of catalog.prices' };
    const { state, reasons } = judgeHealth({ ...factsOf(CASES.healthy), notStored });
    expect([state, reasons.map(({ code }) => code)]).toEqual(['degraded', ['not-stored']]);
    expect(reasons[0]?.text).toMatch(/^1,200 SKUs .*DD1391-100: SQLSTATE 23514, by mine/);
  });

  test('a catalog that was never counted is filling, unless something worse is known', () => {
    expect(judgeHealth({ ...factsOf(CASES.healthy), counts: null }).state).toBe('filling');
    expect(judgeHealth({ ...factsOf(CASES['calls failing']), counts: null }).state).toBe('degraded');
  });
});
