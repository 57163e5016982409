import { expect, test } from 'vitest';
import { Screen } from '../../ops/pictures/screen.ts';
import { svgOf } from '../../ops/pictures/svg.ts';

function shown(columns: number, ...pieces: string[]): Screen {
  const screen = new Screen(columns);
  for (const piece of pieces) screen.write(piece);
  return screen;
}

test('a screen shows what was written last at each position of the cursor', () => {
  expect(shown(80, 'one\r\ntwo\r\n', '\r\u001B[2AONE\u001B[K\r\n\u001B[Jthree').text()).toBe('ONE\nthree');
  expect(shown(3, 'abcde').text()).toBe('abc\nde');
  // A sequence may arrive in two pieces, and an unknown one shows nothing.
  expect(shown(80, 'a\u001B[3', '2mb\u001B[39m\u001B[?25lc').text()).toBe('abc');
  expect(shown(80, 'blank\r\n\r\n   ').text()).toBe('blank');
});

test('a picture keeps columns, colours and special characters, however a browser treats spaces', () => {
  const screen = shown(20, '\u001B[32mok\u001B[39m   a < "b"\u001B[1m  bold\u001B[22m');
  const svg = svgOf(screen.rows(), 20, 'a & b');
  expect(svg).toContain('>a &amp; b</text>');
  const texts = [
    ...svg.matchAll(
      /<text x="([\d.]+)" y="[\d.]+" textLength="([\d.]+)"[^>]*?fill="([^"]+)"([^>]*)>([^<]*)</g,
    ),
  ];
  expect(texts.map(([, x, length, , bold, text]) => [x, length, bold, text])).toEqual([
    ['16', '16.8', '', 'ok'],
    ['58', '58.8', '', 'a &lt; &quot;b&quot;'],
    [
      '134.4'.replace('134.4', String(Math.round((16 + 14 * 8.4) * 10) / 10)),
      '33.6',
      ' font-weight="bold"',
      'bold',
    ],
  ]);
  expect(new Set(texts.map(([, , , fill]) => fill)).size).toBe(2);
});
