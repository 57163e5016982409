import { describe, expect, test } from 'vitest';
import { readyAnswer } from '../../src/daemon/health.ts';
import type { PaceStatus } from '../../src/pace/view.ts';
import { estimateBacklog } from '../../src/status/format.ts';
import { judgeHealth, NO_OWN_FACTS, unreadyReason } from '../../src/status/health.ts';
import { CASES, factsOf, healthOf, mirrorWith, NOW } from './cases.ts';

const PAUSED = CASES.paused.stats.pace.paused;
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1000);
const paceWith = (more: Partial<PaceStatus>): PaceStatus => ({ ...CASES.healthy.stats.pace, ...more });
const codesOf = ({ reasons }: ReturnType<typeof judgeHealth>) =>
  reasons.map(({ level, code }) => `${level} ${code}`);

describe('a mirror whose requests are paused', () => {
  test('is ready, and says that it is paused', () => {
    const answer = readyAnswer(healthOf(CASES.paused));
    expect(answer).toMatchObject({ ok: true, state: 'paused' });
    expect(answer.degraded).toEqual([expect.stringMatching(/^all requests to the partner are paused/)]);
  });

  test.each([
    ['paused', 'until 2026-11-21T13:00:00.000Z, by ann@desk since 2026-11-21T10:00:00.000Z'],
    ['paused and forgotten', 'until `catalog-mirror resume`, by ann@desk'],
  ] as const)('says until when, by whom and since when it is paused: %s', (name, says) => {
    const health = healthOf(CASES[name]);
    expect(codesOf(health)).toEqual(['paused paused']);
    expect(health.reasons[0]?.text).toContain(`all requests to the partner are paused ${says}`);
  });

  test.each(['stale catalog', 'calls failing', 'refreshes late'] as const)(
    'does not report what only follows from the pause: %s',
    (name) => {
      const { stats, ...rest } = CASES[name];
      const health = healthOf({ ...rest, stats: { ...stats, pace: paceWith({ paused: PAUSED }) } });
      expect(health.state).toBe('paused');
      expect(codesOf(health).filter((one) => one !== 'degraded manifest-refused')).toEqual(['paused paused']);
    },
  );

  test('is not broken for something that only a request could show to be over', () => {
    const refused = mirrorWith({
      stats: { pace: { ...CASES['wrong secret suspected'].stats.pace, paused: PAUSED } },
    });
    expect(codesOf(healthOf(refused))).toEqual(['paused paused', 'degraded refused']);
    const { stats, ...gone } = CASES['daemon long gone'];
    const health = healthOf({ ...gone, stats: { ...stats, pace: paceWith({ paused: PAUSED }) } });
    expect(codesOf(health)).toEqual(['paused paused', 'degraded stopped']);
  });

  test('is not ready before its first baseline', () => {
    const { stats, ...rest } = CASES['first manifest failed'];
    const health = healthOf({ ...rest, stats: { ...stats, pace: paceWith({ paused: PAUSED }) } });
    expect(health.state).toBe('paused');
    expect(unreadyReason(health)?.code).toBe('no-baseline');
  });

  test('is broken if its Postgres takes no writes or rows are missing, and still reports all else', () => {
    const facts = factsOf(CASES.paused);
    expect(judgeHealth(facts, { ...NO_OWN_FACTS, storeFailure: 'disk-full' }).state).toBe('broken');
    const tasks = facts.tasks.filter(({ task }) => task !== 'delta');
    expect(codesOf(judgeHealth({ ...facts, tasks }))).toEqual(['broken task-missing', 'paused paused']);
    expect(codesOf(judgeHealth({ ...facts, watchlistLeftOut: 3 }))).toEqual([
      'paused paused',
      'degraded watchlist-full',
    ]);
  });

  test('gets a hint after a day if the pause has no end', () => {
    const reasonAfter = (seconds: number, until: Date | null) =>
      healthOf(mirrorWith({ stats: { pace: paceWith({ paused: { since: ago(seconds), until, by: 'x' } }) } }))
        .reasons[0]?.hint;
    const plain = 'end it with `catalog-mirror resume`';
    expect(reasonAfter(86_400, null)).toBe(plain);
    expect(reasonAfter(86_401, null)).toMatch(/^if it was forgotten/);
    expect(reasonAfter(400_000, new Date(NOW.getTime() + 1000))).toBe(plain);
  });

  test('is judged as usual once the pause is over', () => {
    const { stats, ...rest } = CASES['refreshes late'];
    expect(codesOf(healthOf({ ...rest, stats: { ...stats, pace: paceWith({ paused: null }) } }))).toEqual([
      'degraded backlog-late',
    ]);
  });
});

describe('the estimate while requests are paused', () => {
  const owing = (paused: PaceStatus['paused']) =>
    estimateBacklog(
      mirrorWith({
        stats: {
          due: [{ reason: 'changed', count: 11_800, oldestAgeSeconds: 5 }],
          pace: paceWith({ paused }),
        },
      }),
      NOW,
    );

  test('starts at the end of the pause', () => {
    const [free, paused] = [
      owing(null),
      owing({ since: ago(60), until: new Date(NOW.getTime() + 3_600_000), by: 'x' }),
    ];
    expect((paused.minutes ?? 0) - (free.minutes ?? 0)).toBeCloseTo(60, 5);
    expect(paused).toMatchObject({ sure: 'rough', because: ['requests are paused'] });
  });

  test('is unknown if the pause has no end', () => {
    expect(owing({ since: ago(60), until: null, by: 'x' })).toMatchObject({
      minutes: null,
      because: ['requests are paused'],
    });
  });
});
