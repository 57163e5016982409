import { describe, expect, test } from 'vitest';
import { holds, pauseNews, pauseStatus, whilePaused } from '../../src/pace/pause.ts';
import type { Pause } from '../../src/store/sellers/pause.ts';

const NOW = 1_700_000_000_000;
const MINUTE = 60_000;
const paused = (more: Partial<Pause> = {}): Pause => ({
  since: NOW,
  setAt: NOW,
  until: NOW + MINUTE,
  by: 'ann@desk',
  resumedBy: null,
  ...more,
});

describe('a pause', () => {
  test.each<[string, Pause | null, number, boolean]>([
    ['that nobody has asked for', null, 0, false],
    ['at its beginning', paused(), 0, true],
    ['just before its end', paused(), MINUTE - 1, true],
    ['at its end', paused(), MINUTE, false],
    ['without an end, years later', paused({ until: null }), 1e11, true],
    ['that was resumed', paused({ until: null, resumedBy: 'bob@desk' }), 1, false],
    ['that a clock ahead has dated', paused(), -1000, true],
  ])('%s', (_, pause, after, expected) => {
    expect(holds(pause, NOW + after)).toBe(expected);
    expect(whilePaused(pause, NOW + after) !== null).toBe(expected);
    expect(pauseStatus(pause, NOW + after) !== null).toBe(expected);
  });

  test('is checked again within seconds, because somebody may resume, and no later than its end', () => {
    expect(whilePaused(paused(), NOW)).toEqual({ go: false, at: NOW + 5000, because: 'paused' });
    expect(whilePaused(paused({ until: null }), NOW)).toMatchObject({ at: NOW + 5000 });
    expect(whilePaused(paused(), NOW + MINUTE - 300)).toMatchObject({ at: NOW + MINUTE });
  });

  test('is shown with its author, and with its end if it has one', () => {
    expect(pauseStatus(paused(), NOW)).toEqual({
      since: new Date(NOW),
      until: new Date(NOW + MINUTE),
      by: 'ann@desk',
    });
    expect(pauseStatus(paused({ until: null }), NOW)).toMatchObject({ until: null });
  });
});

describe('what a daemon reports about a pause', () => {
  const first = paused();
  const longer = paused({ setAt: NOW + 1000, until: NOW + 2 * MINUTE });
  const resumed = paused({ resumedBy: 'bob@desk' });
  test.each<[string, Pause | null, Pause | null, number, 'paused' | 'resumed' | null]>([
    ['nothing where there never was one', null, null, 0, null],
    ['nothing of one that was over before it looked', null, resumed, 1, null],
    ['that it has begun', null, first, 1, 'paused'],
    ['nothing while it lasts', first, first, 2000, null],
    ['that it has another end', first, longer, 2000, 'paused'],
    ['that it was resumed', first, resumed, 1000, 'resumed'],
    ['that it has ended by itself', first, first, MINUTE, 'resumed'],
    ['that its row has gone', first, null, 1000, 'resumed'],
  ])('%s', (_, before, pause, after, what) => {
    expect(pauseNews(before, pause, NOW + after)?.what ?? null).toBe(what);
  });
});
