import { describe, expect, test } from 'vitest';
import { promisesLine } from '../../src/status/format.ts';
import { judgeHealth, NO_OWN_FACTS } from '../../src/status/health.ts';
import { awayScreen, screen } from '../../src/status/screen.ts';
import type { Terminal } from '../../src/status/style.ts';
import type { HintStats } from '../../src/store/sellers/hint-sources.ts';
import { CASES, healthOf, mirrorWith, NOW } from './cases.ts';

const PIPE: Terminal = { width: null, colour: false, ascii: false };
// oxlint-disable-next-line no-control-regex
const CSI = /\u001B\[\d+m/g;

const drawn = (name: keyof typeof CASES, terminal: Terminal = PIPE) =>
  screen(CASES[name], healthOf(CASES[name]), NOW, terminal);
const names = Object.keys(CASES) as (keyof typeof CASES)[];

test.each(names)('the screen of %s matches its golden file', async (name) => {
  await expect(`${drawn(name)}\n`).toMatchFileSnapshot(`golden/${name.replaceAll(' ', '-')}.txt`);
});

test('without Postgres the screen consists of the reasons', () => {
  const own = { ...NO_OWN_FACTS, unreadable: 'no route to host', queues: 'no Redis' };
  expect(awayScreen(judgeHealth(null, own), PIPE).split('\n')).toEqual([
    'broken: no route to host',
    expect.stringMatching(/^ {2}no Redis; /),
  ]);
});

test('a coloured screen of 80 columns matches its golden file', async () => {
  await expect(`${drawn('backing off', { width: 80, colour: true, ascii: false })}\n`).toMatchFileSnapshot(
    'golden/terminal-80-colour.txt',
  );
});

test('the screen has no escapes without colour, and the same text with it', () => {
  for (const name of names) {
    expect(drawn(name)).not.toContain('\u001B');
    const colour = drawn(name, { ...PIPE, colour: true });
    expect(colour).toMatch(CSI);
    expect(colour.replace(CSI, '')).toBe(drawn(name));
  }
});

test.each([20, 30, 40, 60, 80, 120, 200])('no line is wider than a terminal of %i columns', (width) => {
  for (const name of names) {
    for (const colour of [false, true]) {
      const lines = drawn(name, { width, colour, ascii: false }).replace(CSI, '').split('\n');
      expect([name, Math.max(...lines.map((line) => line.length)) <= width]).toEqual([name, true]);
    }
  }
});

test('bars are ASCII if the terminal shows nothing else', () => {
  // oxlint-disable-next-line no-control-regex
  for (const name of names) expect(drawn(name, { ...PIPE, ascii: true })).toMatch(/^[\u0000-\u007F]*$/);
});

test('names from the partner cannot control the terminal', () => {
  const status = mirrorWith({ stats: { snapshotId: 'a\u001B]0;title\u0007b\r\u009B2Jc\u202Ed' } });
  const text = screen(status, healthOf(status), NOW, PIPE);
  // oxlint-disable-next-line no-control-regex
  expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u202E]/);
  expect(text).toContain('a\uFFFD]0;title\uFFFDb\uFFFD\uFFFD2Jc\uFFFDd');
});

test('SKUs in errors are named even if they are few, and so are unsteady columns', () => {
  const failing = [
    { sku: 'A\nB', failures: 12, oldestAgeSeconds: 7200, error: 'reported' },
    { sku: 'C', failures: 1, oldestAgeSeconds: 60, error: null },
  ];
  const shownWith = (errors: number, unsteadyColumns: readonly string[] = []) => {
    const due = [{ reason: 'error', count: errors, oldestAgeSeconds: 7200 }];
    const status = mirrorWith({ stats: { due, failing, unsteadyColumns } });
    return screen(status, healthOf(status), NOW, PIPE).split('\n');
  };
  expect(shownWith(2)[0]).toMatch(/^healthy: /);
  expect(shownWith(2)).toContain(
    'failing     2 SKUs: A\uFFFDB (the partner has it in `errors`, 12 in a row, due for 2.0h), C (1 in a row, due for 60s); `catalog-mirror show SKU` tells more',
  );
  expect(shownWith(9).join()).toContain('C (1 in a row, due for 60s), 7 others; ');
  expect(shownWith(2, ['brand', 'model'])).toContain(
    'columns     brand, model change with each refresh of many SKUs; see catalog.product_history, and tell the partner',
  );
  expect(drawn('healthy')).not.toMatch(/^(failing|columns)/m);
});

test('half of the share fills half of the bar', () => {
  const status = mirrorWith({ stats: { pace: { ...CASES.healthy.stats.pace, usedInWindow: 59 } } });
  const text = screen(status, healthOf(status), NOW, PIPE);
  expect(text).toMatch(/^ +used +█{20} +59\/118 of the share$/m);
});

test('a calibration by a single refresh says "1 refresh"', () => {
  const calibration = [{ cohort: 'live', looks: 1, rightShare: 1, claimedShare: 0.988, error: 0.012 }];
  const status = mirrorWith({ stats: { calibration } });
  expect(screen(status, healthOf(status), NOW, PIPE)).toMatch(/^calibration live .* in 1 refresh$/m);
});

describe('hints', () => {
  const line = (hints: HintStats) => {
    const status = mirrorWith({ stats: { hints } });
    return /^hints .*$/m.exec(screen(status, healthOf(status), NOW, PIPE))?.[0] ?? null;
  };
  const source = (name: string) => ({
    source: name,
    hints: 4000,
    refreshesBroughtForward: 120,
    precision: 0.52,
    recall: 0.487,
    waiting: 9,
  });

  test('have no line if nobody has given any', () => {
    expect(line({ unread: 0, sources: [] })).toBeNull();
    expect(line({ unread: 1200, sources: [] })).toBe('hints       1,200 not read yet');
  });

  test('are summarised by source, the first three by name', () => {
    expect(line({ unread: 0, sources: [source('orders')] })).toBe(
      'hints       orders right 52.0 % of the time, told of 48.7 % of all moves (4,000 hints, 120 refreshes brought forward)',
    );
    expect(
      line({ unread: 0, sources: [{ ...source('new'), hints: 1, refreshesBroughtForward: 1 }] }),
    ).toMatch(/\(1 hint, 1 refresh brought forward\)$/);
    const all = line({ unread: 2, sources: ['a', 'b', 'c', 'd\ne', 'f'].map(source) });
    expect(all?.match(/right/g)).toHaveLength(3);
    expect(all).toMatch(/; 2 other sources; 2 not read yet$/);
  });

  test('stay on one line even if the name of a source has line breaks', () => {
    expect(line({ unread: 0, sources: [source('two\nlines\u001B[2J')] })).toContain(
      'two\uFFFDlines\uFFFD[2J right',
    );
  });
});

describe('the line about promises', () => {
  const STATS = {
    promises: 40,
    feasible: 40,
    leftOut: 0,
    neededPerMinute: 60.2,
    availablePerMinute: 94.4,
    cases: 20_000,
    kept: 19_999,
  };

  test('appears only if something is promised, and says whether it fits and was kept', () => {
    expect(promisesLine({ ...STATS, promises: 0 })).toBeNull();
    expect(promisesLine(STATS)).toBe(
      "the ages of 40 SKUs; they need 61 of 94 requests per minute; 99.99 % of the last day's were kept",
    );
    expect(promisesLine({ ...STATS, feasible: 30, leftOut: 10, neededPerMinute: 125.5, cases: 0 })).toBe(
      'the ages of 40 SKUs; the account cannot keep 10: they need 126 requests per minute, 94 can be had',
    );
  });
});
