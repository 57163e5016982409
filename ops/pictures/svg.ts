import type { Cell, Style } from './screen.ts';

const CELL = { width: 8.4, height: 19 };
const MARGIN = 16;
const TITLE_HEIGHT = 30;
const BACKGROUND = '#0f141b';
const FOREGROUND = '#d5dbe3';
const DIM = '#8492a6';
const COLOURS: Readonly<Record<number, string>> = {
  31: '#ff7b72',
  32: '#56d364',
  33: '#e3b341',
  36: '#4cc9f0',
};

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const fillOf = ({ colour, dim }: Style): string =>
  colour === null ? (dim ? DIM : FOREGROUND) : (COLOURS[colour] ?? FOREGROUND);

/** Words, one blank between them: browsers make one blank of several. */
const WORDS = /\S+(?: \S+)*/g;

/** Cells side by side that are painted alike, without the blanks between them. */
function runsOf(
  row: readonly Cell[],
): { readonly at: number; readonly text: string; readonly style: Style }[] {
  const runs: { at: number; text: string; style: Style }[] = [];
  for (const [at, { sign, style }] of row.entries()) {
    const last = runs.at(-1);
    const isAlike =
      last !== undefined && fillOf(last.style) === fillOf(style) && last.style.bold === style.bold;
    if (isAlike) last.text += sign;
    else runs.push({ at, text: sign, style });
  }
  return runs.flatMap(({ at, text, style }) =>
    [...text.matchAll(WORDS)].map((found) => ({ at: at + found.index, text: found[0], style })),
  );
}

/** A picture of a terminal, with its command above it. `columns`: how wide it is. */
export function svgOf(rows: readonly (readonly Cell[])[], columns: number, title: string): string {
  const number = (n: number) => String(Math.round(n * 10) / 10);
  const [width, height] = [
    columns * CELL.width + 2 * MARGIN,
    TITLE_HEIGHT + rows.length * CELL.height + 2 * MARGIN,
  ];
  const lines = rows.flatMap((row, i) => {
    const y = TITLE_HEIGHT + MARGIN + (i + 0.75) * CELL.height;
    return runsOf(row).map(({ at, text, style }) => {
      const bold = style.bold ? ' font-weight="bold"' : '';
      // Its length is given, so that every font keeps the columns.
      return `<text x="${number(MARGIN + at * CELL.width)}" y="${number(y)}" textLength="${number(text.length * CELL.width)}" lengthAdjust="spacingAndGlyphs" fill="${fillOf(style)}"${bold}>${escaped(text)}</text>`;
    });
  });
  const dots = [COLOURS[31], COLOURS[33], COLOURS[32]].map(
    (colour, i) => `<circle cx="${MARGIN + 5 + i * 18}" cy="18" r="5" fill="${colour ?? ''}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${number(width)} ${number(height)}" width="${number(width)}" height="${number(height)}" role="img" aria-label="${escaped(title)} in a terminal" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">`,
    `<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>`,
    ...dots,
    `<text x="${number(width / 2)}" y="22" text-anchor="middle" fill="${DIM}">${escaped(title)}</text>`,
    ...lines,
    '</svg>',
    '',
  ].join('\n');
}
