import { figure, type Figure } from '../frame/figure.ts';
import { seeded } from './random.ts';
import { runLive } from './run.ts';

/**
 * A market that nobody has thought of: how large and how lively it is, how much its SKUs differ, what is scarce, and
 * how long it is known.
 */
function drawnMarket(seed: number) {
  const random = seeded(seed);
  const between = (least: number, most: number) => least * (most / least) ** random();
  const one = <T>(...of: readonly T[]) => of[Math.floor(random() * of.length)] as T;
  const hours = one(4, 12, 24);
  return {
    skus: Math.round(between(2000, 20_000)),
    medianMinutes: between(20, 8000),
    spread: 0.4 + 2 * random(),
    weights: one('zipf', 'watch', 'uniform'),
    ceiling: one(null, null, 100, 200, 400),
    hours,
    // The first hours from the end of the initial load on, or the second half of a day.
    judgedFrom: hours === 4 ? 30 : hours * 30,
  } as const;
}

/** How likely live prices are right, in a market drawn anew for each seed. */
export function* drawnFigures(seeds: readonly number[]): Generator<Figure> {
  const runs = seeds.map((seed) => {
    const { skus, ...market } = drawnMarket(seed);
    return runLive(seed, { skus, hours: market.hours }, { ...market, policy: 'index', trust: true }).trust;
  });
  const each = (value: (run: (typeof runs)[number]) => number) => runs.map(value);
  yield figure(
    'p_right, drawn markets: live prices right',
    each((r) => r.rightOfAll),
  );
  yield figure(
    'p_right, drawn markets: part with p_right ≥ 0.95',
    each((r) => r.coverage),
  );
  yield figure(
    'p_right, drawn markets: right with p_right ≥ 0.95',
    each((r) => r.right),
    '≥',
    0.95,
    true,
  );
  yield figure(
    'p_right, drawn markets: right with p_right ≥ 0.99',
    each((r) => r.rightOfSurest),
    '≥',
    0.985,
    true,
  );
  yield figure(
    'p_right, drawn markets: calibration error',
    each((r) => r.calibrationError),
    '≤',
    0.015,
  );
}
