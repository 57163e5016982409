import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawCalibration } from '../../ops/pictures/calibration-svg.ts';
import { type DrawnPanel, drawPanels, ticksUpTo, valueText } from '../../ops/pictures/panel-svg.ts';

const panel = (more: Partial<DrawnPanel> = {}): DrawnPanel => ({
  title: 'SKUs due',
  unit: 'short',
  stat: false,
  stacked: false,
  width: 12,
  limits: [],
  lines: [
    {
      legend: 'new',
      values: [
        [100, 0],
        [160, 50],
      ],
    },
  ],
  ...more,
});

test.each([
  [0.987, 'percentunit', '98.7 %'],
  [118.2, 'cpm', '118/min'],
  [12_345, 'short', '12.3 k'],
  [0, 's', '0 s'],
  [0.25, 's', '250 ms'],
  [59.94, 's', '59.9 s'],
  [150, 's', '2.5 min'],
  [7200, 's', '2 h'],
  [3 * 2 ** 20, 'bytes', '3 MiB'],
])('%d in %s is written %s', (value, unit, text) => expect(valueText(value, unit)).toBe(text));

test('an axis covers the largest value with at most five even steps', () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 1e9, noNaN: true }), (most) => {
      const ticks = ticksUpTo(most);
      expect(ticks[0]).toBe(0);
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(most * (1 - 1e-6));
      expect(ticks.length).toBeLessThanOrEqual(6);
      expect(ticks.at(-2)).toBeLessThan(most);
    }),
  );
  expect(ticksUpTo(0)).toEqual([0, 0.5, 1]);
});

describe('a drawn panel', () => {
  test('draws a line from its first to its last sample, within its axis', () => {
    const svg = drawPanels([panel()], 'a test');
    // The axis runs from 0 at y = 178 to 60 at y = 42.
    expect(svg).toContain('<polyline points="72,178 624,64.7"');
    expect(svg).not.toContain('NaN');
  });

  test('draws a stack as sums', () => {
    const lines = ['new', 'changed'].flatMap((legend) =>
      panel().lines.map(({ values }) => ({ legend, values })),
    );
    const tops = [
      ...drawPanels([panel({ stacked: true, lines })], '').matchAll(/<polyline points="\S+ \S+,(\S+)"/g),
    ];
    expect(tops.map(([, y]) => Number(y))).toEqual([110, 42]);
  });

  test('draws a dashed line at a limit within its axis', () => {
    expect(drawPanels([panel({ limits: [25] })], '')).toContain('stroke-dasharray');
    expect(drawPanels([panel({ limits: [5000] })], '')).not.toContain('stroke-dasharray');
  });

  test('says if there is no data', () => {
    for (const stat of [true, false])
      expect(drawPanels([panel({ stat, lines: [] })], '')).toContain('no data');
  });

  test('shows a single state by its name, and any other single value as a number', () => {
    const lines = [{ legend: 'healthy', values: [[100, 1] as const] }];
    expect(drawPanels([panel({ stat: true, lines })], '')).toContain('>healthy<');
    const age = drawPanels([panel({ stat: true, unit: 's', lines })], '');
    expect(age).toContain('>1 s<');
    expect(age).not.toContain('>healthy<');
  });

  test('escapes any text', () => {
    const svg = drawPanels([panel({ title: '<b>&"' })], '"<');
    expect(svg).toContain('&lt;b&gt;&amp;&quot;');
    expect(svg).toContain('aria-label="&quot;&lt;"');
  });
});

test('panels are placed side by side as far as the columns reach', () => {
  const svg = drawPanels([panel(), panel(), panel({ width: 24 })], '');
  const places = [...svg.matchAll(/class="frame" x="(\d+)" y="(\d+)" width="(\d+)"/g)].map((found) =>
    found.slice(1).map(Number),
  );
  expect(places).toEqual([
    [8, 8, 628],
    [644, 8, 628],
    [8, 248, 1264],
  ]);
});

test('a calibration bin is a circle at its claimed and actual share, sized by its prices', () => {
  const tenth = { market: 'fast', prices: 1000, right: 0.5, claimed: 0.5 };
  const svg = drawCalibration(
    [
      tenth,
      { ...tenth, prices: 250, right: 1, claimed: 1 },
      { ...tenth, prices: 5, claimed: 0 },
      { ...tenth, market: 'slow', prices: 40 },
    ],
    'a <caption>',
  );
  const circles = [...svg.matchAll(/<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)" fill="([^"]+)"/g)];
  const [half, sure, other] = circles.map(([, ...numbers]) => numbers);
  expect(circles).toHaveLength(3);
  expect(half?.slice(0, 3)).toEqual(['274', '244', '16']);
  expect(sure?.slice(0, 3)).toEqual(['484', '34', '9.5']);
  expect(other?.[3]).not.toBe(half?.[3]);
  expect(svg).toContain('>slow</text>');
  expect(svg).toContain('a &lt;caption&gt;');
});
