import { COLOURS, escape, plain, rounded, STYLE } from './panel-svg.ts';

/** A row of catalog.calibration. */
export interface CohortTenth {
  readonly cohort: string;
  readonly looks: number;
  /** Both in [0, 1]. */
  readonly right: number;
  readonly claimed: number;
}

const SIDE = 420;
const LEFT = 64;
const TOP = 34;
const LEGEND = 300;
const MARKS = [0, 0.2, 0.4, 0.6, 0.8, 1];
/** A part of so few refreshes is mostly chance. */
const LEAST_LOOKS = 30;

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

/** A circle for each tenth, its area as many refreshes; those of few refreshes are left out. */
function circles(tenths: readonly CohortTenth[], colour: string, most: number): string[] {
  return tenths
    .filter(({ looks }) => looks >= LEAST_LOOKS)
    .map(
      ({ looks, right, claimed }) =>
        `<circle cx="${xOf(claimed)}" cy="${yOf(right)}" r="${rounded(3 + 13 * Math.sqrt(looks / most))}" fill="${colour}" fill-opacity="0.45" stroke="${colour}"><title>${plain(looks)} refreshes: ${rounded(100 * claimed)} % claimed, ${rounded(100 * right)} % right</title></circle>`,
    );
}

/** What was claimed of prices beside what was found, by cohort: a circle on the diagonal was right as often as it said. */
export function drawCalibration(rows: readonly CohortTenth[], caption: string): string {
  const ofSkus = rows.filter(({ cohort }) => !cohort.endsWith(' sizes'));
  const most = Math.max(1, ...ofSkus.map(({ looks }) => looks));
  const cohorts = Map.groupBy(ofSkus, ({ cohort }) => cohort);
  const width = LEFT + SIDE + LEGEND;
  const height = TOP + SIDE + 66;
  const drawn = [...cohorts].flatMap(([cohort, tenths], at) => {
    const colour = COLOURS[at % COLOURS.length] ?? '';
    const looks = tenths.reduce((sum, tenth) => sum + tenth.looks, 0);
    const y = TOP + 12 + at * 22;
    return [
      ...circles(tenths, colour, most),
      `<rect x="${LEFT + SIDE + 24}" y="${y - 9}" width="10" height="10" fill="${colour}"/><text x="${LEFT + SIDE + 42}" y="${y}">${escape(cohort)}: ${plain(looks)} refreshes</text>`,
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
