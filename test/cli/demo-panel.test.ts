import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { accessLines, keptLines } from '../../src/cli/demo-environment.ts';
import { demoLine, demoPanel, demoStep, type DemoView, isLoading } from '../../src/cli/demo-panel.ts';
import { createPanel } from '../../src/cli/terminal.ts';
import type { Terminal } from '../../src/status/style.ts';
import { CASES, healthOf, NOW } from '../status/cases.ts';

const at = (width: number, more: Partial<Terminal> = {}): Terminal => ({
  width,
  colour: false,
  ascii: false,
  ...more,
});

function viewOf(name: keyof typeof CASES): DemoView {
  const change = { sku: 'DD1391-100', size: '9', old_price: 5000, new_price: 4800, observed_at: NOW };
  const long = { ...change, sku: 'X'.repeat(300), old_price: null, new_price: null };
  const evil = { ...change, sku: '\u001b[2J', size: '\u009b' };
  return {
    status: CASES[name],
    health: healthOf(CASES[name]),
    now: NOW,
    changes: { count: 1857, newest: [change, long, evil] },
  };
}

describe('the panel of the demo', () => {
  const names = Object.keys(CASES) as (keyof typeof CASES)[];

  test.each([31, 40, 80, 200])('fits a terminal of %d columns, in every state', (width) => {
    for (const name of names)
      for (const isFilled of [false, true])
        for (const colour of [false, true]) {
          const lines = demoPanel(viewOf(name), isFilled, 'a '.repeat(300), at(width, { colour }));
          const shown = lines.map((line) => stripVTControlCharacters(line));
          expect(Math.max(...shown.map(({ length }) => length))).toBeLessThan(width);
          if (!colour) expect(lines).toEqual(shown);
        }
  });

  test('shows a bar, what is left, the latest changes, and how to stop', () => {
    expect(demoPanel(viewOf('first fill'), false, 'a size_type changed (FV5029-141)', at(80)))
      .toMatchInlineSnapshot(`
      [
        "filling   ██████▎░░░░░░░░░░░░░░░░░░  25 %  5,000 of 20,000 SKUs, about 76s left",
        "requests  64 of 118 in the last minute",
        "just now  DD1391-100     9         5,000 → 4,800   0s ago",
        "          XXXXXXXXXXXXX… 9          none → none    0s ago",
        "          �[2J           �         5,000 → 4,800   0s ago",
        "log       a size_type changed (FV5029-141)",
        "          press Ctrl-C to stop; the mirror is kept",
      ]
    `);
    expect(demoPanel(viewOf('healthy'), true, null, at(40, { ascii: true }))).toMatchInlineSnapshot(`
      [
        "healthy   20,000 SKUs, 70 due, 1,857",
        "          price changes recorded, delta",
        "          checked 100s ago",
        "requests  64 of 118 in the last minute",
        "just now  DD1391-100 9 5,000 -> 4,800",
        "          XXXXXXXXXXXXX~ 9 none -> none",
        "          �[2J � 5,000 -> 4,800",
        "          press Ctrl-C to stop; the",
        "          mirror is kept",
      ]
    `);
  });

  test('contains nothing that a terminal takes for a command', () => {
    const text = demoPanel(viewOf('healthy'), true, '\u001b]0;x\u0007', at(80)).join('');
    // oxlint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });

  test('shows no bar after the load, even if new SKUs appear', () => {
    expect(demoPanel(viewOf('first fill'), true, null, at(80)).join('')).not.toMatch(/[█░]/);
  });

  test('says what is wrong instead of how much is done', () => {
    const [first] = demoPanel(viewOf('stale catalog'), true, null, at(200));
    expect(first).toMatch(/^degraded {2}the chain of deltas has been broken/);
  });
});

describe('the lines of the demo', () => {
  test('describe the load until it is over, and never again', () => {
    const view = viewOf('first fill');
    expect(isLoading(view)).toBe(true);
    expect(demoLine(view, false)).toMatch(/^filling: [\d,]+ of [\d,]+ SKUs.* \(\d+ %\)$/);
    expect(demoStep(view, true)).not.toBe(demoStep(view, false));
    expect(isLoading(viewOf('healthy'))).toBe(false);
    expect(demoLine(viewOf('healthy'), true)).toMatch(
      /^healthy: [\d,]+ SKUs, [\d,]+ due, 1,857 price changes recorded/,
    );
  });
});

describe('the addresses of the demo', () => {
  const addresses = { httpPort: 9464, databaseUrl: 'postgres://postgres:generated@127.0.0.1:5433/postgres' };

  test.each([
    [{}, 'catalog-mirror status --watch'],
    [{ npm_lifecycle_event: 'demo' }, 'npm start -- status --watch'],
    [{ npm_lifecycle_event: 'npx' }, 'npx catalog-mirror status --watch'],
    [{ DATA_DIR: "/a b/it's" }, `DATA_DIR='/a b/it'\\''s' catalog-mirror status --watch`],
  ])('come with the command by which it was started: %j', (env, line) => {
    expect(accessLines(addresses, env).map((each) => each.trim())).toContain(line);
    expect(keptLines('x/demo/postgres', env).join('\n')).toContain(line.replace(' --watch', ''));
  });

  test.each(['DATABASE_URL', 'DATABASE_URL_FILE'])(
    'show no password of a configured database: %s',
    (name) => {
      const text = accessLines(addresses, { [name]: 'canary' }).join('\n');
      expect(text).toContain(name);
      expect(text).not.toMatch(/generated|canary/);
      expect(keptLines('x', { [name]: 'canary' })).toEqual([
        'stopped; the mirror is kept in the database of DATABASE_URL',
      ]);
    },
  );
});

describe('a panel', () => {
  const output = (columns: number, rows: number) => {
    const written: string[] = [];
    return { isTTY: true as const, columns, rows, written, write: (text: string) => written.push(text) > 0 };
  };

  test('is redrawn in place, and printed lines appear above it', () => {
    const out = output(80, 24);
    const panel = createPanel(out);
    panel.draw(['a', 'b']);
    panel.draw(['c']);
    panel.print('said');
    panel.close();
    expect(out.written).toEqual([
      '\u001B[?25la\u001B[K\nb\u001B[K\n\u001B[J',
      '\r\u001B[2Ac\u001B[K\n\u001B[J',
      '\r\u001B[1Asaid\u001B[K\nc\u001B[K\n\u001B[J',
      '\u001B[?25h',
    ]);
  });

  test('moves back by the rows that its lines take in a narrower terminal', () => {
    const out = output(80, 24);
    const panel = createPanel(out);
    panel.draw([`\u001B[32m${'x'.repeat(60)}\u001B[39m`, 'y']);
    out.columns = 40;
    panel.draw(['z']);
    expect(out.written[1]).toBe('\r\u001B[3Az\u001B[K\n\u001B[J');
  });

  test('is never higher than the terminal', () => {
    const out = output(80, 3);
    createPanel(out).draw(['1', '2', '3', '4']);
    expect(out.written.join('').split('\n')).toHaveLength(3);
  });
});
