import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createCanvas, createPanel, terminalOf } from '../../src/cli/terminal.ts';
import { painter } from '../../src/status/style.ts';

function output(isTTY: boolean) {
  const written: string[] = [];
  return { written, isTTY, columns: 70, rows: 4, write: (text: string) => written.push(text) > 0 };
}

test.each([
  [true, {}, { width: 70, colour: true, ascii: false }],
  [true, { NO_COLOR: '1' }, { width: 70, colour: false, ascii: false }],
  [true, { NO_COLOR: '' }, { width: 70, colour: true, ascii: false }],
  [true, { TERM: 'dumb' }, { width: 70, colour: false, ascii: true }],
  [true, { LANG: 'C' }, { width: 70, colour: true, ascii: true }],
  [true, { LANG: 'C', LC_ALL: 'de_DE.utf8' }, { width: 70, colour: true, ascii: false }],
  [true, { FORCE_COLOR: '0' }, { width: 70, colour: false, ascii: false }],
  [true, { FORCE_COLOR: '' }, { width: 70, colour: true, ascii: false }],
  [false, { FORCE_COLOR: '1' }, { width: null, colour: true, ascii: false }],
  [false, { FORCE_COLOR: 'false' }, { width: null, colour: false, ascii: false }],
  [false, { FORCE_COLOR: '1', NO_COLOR: '1' }, { width: null, colour: true, ascii: false }],
  [false, { LANG: 'C.UTF-8' }, { width: null, colour: false, ascii: false }],
])('a terminal (%s) with %o has the expected abilities', (isTTY, env, expected) => {
  expect(terminalOf(output(isTTY), env)).toEqual(expected);
});

test.each(['NO_COLOR', 'FORCE_COLOR'])('colours follow the argument; %s is not consulted again', (name) => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv(name, name === 'NO_COLOR' ? '1' : '3');
  const paint = (colour: boolean, text: string) =>
    painter({ width: null, colour, ascii: false })('green', text);
  expect(paint(true, 'well')).toBe('\u001B[32mwell\u001B[39m');
  expect([paint(true, ''), paint(false, 'well')]).toEqual(['', 'well']);
});

test('a canvas overwrites in place, fits the height, and leaves the last screen on the terminal', () => {
  const out = output(true);
  const canvas = createCanvas(out);
  canvas.draw('1\n2\n3\n4\n5');
  canvas.draw('a');
  canvas.close();
  expect(out.written).toEqual([
    '\u001B[?1049h\u001B[?25l\u001B[H1\u001B[K\n2\u001B[K\n3\u001B[K\n\u001B[J',
    '\u001B[Ha\u001B[K\n\u001B[J',
    '\u001B[?25h\u001B[?1049la\n',
  ]);
  expect(out.written.join('')).not.toContain('\u001B[2J');
});

test('a pipe gets one screen after the other, without escapes', () => {
  const out = output(false);
  const canvas = createCanvas(out);
  canvas.draw('a\nb');
  canvas.draw('c');
  canvas.close();
  expect(out.written).toEqual(['a\nb\n', 'c\n']);
});

describe('a terminal that reports 0 × 0, as some containers and serial lines do', () => {
  const unsized = () => {
    const written: string[] = [];
    return {
      isTTY: true as const,
      columns: 0,
      rows: 0,
      written,
      write: (text: string) => written.push(text) > 0,
    };
  };

  test('has the usual width', () => {
    expect(terminalOf(unsized(), {})).toMatchObject({ width: 80 });
  });

  test('shows a screen of the usual height', () => {
    const out = unsized();
    createCanvas(out).draw('1\n2\n3');
    expect(out.written.join('')).toContain('3');
  });

  test('moves a panel back by the rows of the usual size', () => {
    const out = unsized();
    const panel = createPanel(out);
    panel.draw(['x'.repeat(100), 'y']);
    panel.draw(['z']);
    expect(out.written[1]).toBe('\r\u001B[3Az\u001B[K\n\u001B[J');
  });
});
