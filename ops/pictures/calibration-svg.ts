import { COLOURS, escape, plain, rounded, STYLE } from './panel-svg.ts';

/** Prices of a market whose probability was in one tenth: how many, and the part of them that was right beside what was claimed. */
export interface MarketTenth {
  readonly market: string;
  readonly prices: number;
  /** Both in [0, 1]. */
  readonly right: number;
  readonly claimed: number;
}

const SIDE = 420;
const LEFT = 64;
const TOP = 34;
const LEGEND = 300;
const MARKS = [0, 0.2, 0.4, 0.6, 0.8, 1];
/** A part of so few prices is mostly chance. */
const MIN_PRICES = 30;

const xOf = (share: number) => rounded(LEFT + share * SIDE);
const yOf = (share: number) => rounded(TOP + (1 - share) * SIDE);

function grid(): string[] {
  return MARKS.flatMap((mark) => [
    `<line class="grid" x1="${xOf(0)}" x2="${xOf(1)}" y1="${yOf(mark)}" y2="${yOf(mark)}"/>`,
    `<line class="grid" x1="${xOf(mark)}" x2="${xOf(mark)}" y1="${yOf(0)}" y2="${yOf(1)}"/>`,
    `<text class="quiet end" x="${LEFT - 8}" y="${rounded(Number(yOf(mark)) + 4)}">${100 * mark} %</text>`,
    `<text class="quiet middle" x="${xOf(mark)}" y="${TOP + SIDE + 18}">${100 * mark} %</text>`,
  ]);
}

/** A circle for each tenth, its area as many prices; those of few are left out. */
function circles(tenths: readonly MarketTenth[], colour: string, most: number): string[] {
  return tenths
    .filter(({ prices }) => prices >= MIN_PRICES)
    .map(
      ({ prices, right, claimed }) =>
        `<circle cx="${xOf(claimed)}" cy="${yOf(right)}" r="${rounded(3 + 13 * Math.sqrt(prices / most))}" fill="${colour}" fill-opacity="0.45" stroke="${colour}"><title>${plain(prices)} prices: ${rounded(100 * claimed)} % claimed, ${rounded(100 * right)} % right</title></circle>`,
    );
}

/** What was claimed of prices beside what was found, by market: a circle on the diagonal was right as often as it said. */
export function drawCalibration(rows: readonly MarketTenth[], caption: string): string {
  const most = Math.max(1, ...rows.map(({ prices }) => prices));
  const markets = Map.groupBy(rows, ({ market }) => market);
  const width = LEFT + SIDE + LEGEND;
  const height = TOP + SIDE + 66;
  const drawn = [...markets].flatMap(([market, tenths], at) => {
    const colour = COLOURS[at % COLOURS.length] ?? '';
    const y = TOP + 12 + at * 22;
    return [
      ...circles(tenths, colour, most),
      `<rect x="${LEFT + SIDE + 24}" y="${y - 9}" width="10" height="10" fill="${colour}"/><text x="${LEFT + SIDE + 42}" y="${y}">${escape(market)}</text>`,
    ];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escape(caption)}">
<style>${STYLE}</style>
<rect width="100%" height="100%" style="fill:var(--page)"/><rect class="frame" x="${LEFT}" y="${TOP}" width="${SIDE}" height="${SIDE}"/>
${grid().join('\n')}
<line x1="${xOf(0)}" y1="${yOf(0)}" x2="${xOf(1)}" y2="${yOf(1)}" stroke="#ef4444" stroke-dasharray="4 4"/>
${drawn.join('\n')}
<text class="quiet" x="8" y="20">found right</text><text class="quiet end" x="${xOf(1)}" y="${TOP + SIDE + 36}">probability claimed before (p_right)</text>
<text class="quiet" x="8" y="${height - 9}">${escape(caption)}</text>
</svg>
`;
}
