import { figure, type Figure } from '../frame/figure.ts';
import { type BenchSize, runLive } from './run.ts';
import type { TrustAccount } from './trust.ts';

/** What may be acted on by probability, beside what the age of a price would say, in each kind of market. */
export function* trustFigures(seeds: readonly number[], size: BenchSize): Generator<Figure> {
  // Rates are learned for three days; of what comes out the first half is left out.
  const hours = 1.5 * size.hours;
  const market = { policy: 'index', weights: 'zipf', ceiling: null, trust: true, hours } as const;
  const markets = {
    zipf: market,
    'zipf, ceiling 200': { ...market, ceiling: 200 },
    watch: { ...market, weights: 'watch' },
    'watch, ceiling 200': { ...market, weights: 'watch', ceiling: 200 },
    'bursty neighbours': { ...market, neighbours: 'bursty' },
    'ten times faster': { ...market, medianMinutes: 36 },
    'rates redrawn every two days': { ...market, redrawHours: size.hours, hours: 2 * size.hours },
  } as const;
  // A fill has just ended, and nothing is known of any SKU: what is claimed in the first hours is what is believed of
  // all.
  for (const [speed, medianMinutes] of Object.entries({
    'ten times faster': 36,
    usual: 360,
    'ten times slower': 3600,
  })) {
    const first = seeds.map(
      (seed) => runLive(seed, size, { ...market, medianMinutes, hours: 4, judgedFrom: 30 }).trust,
    );
    const name = `p_right, first hours of a ${speed} market: `;
    yield figure(
      `${name}part with p_right ≥ 0.95`,
      first.map((r) => r.coverage),
    );
    yield figure(
      `${name}right with p_right ≥ 0.95`,
      first.map((r) => r.right),
      '≥',
      0.95,
    );
    yield figure(
      `${name}calibration error`,
      first.map((r) => r.calibrationError),
      '≤',
      0.015,
    );
  }
  for (const [name, of] of Object.entries(markets)) {
    const results = seeds.map((seed) => runLive(seed, size, of).trust);
    // Hours pass until rates that have just been drawn anew are learned: there even known ones leave 0.42 of the
    // wrong prices; and 0.56 where most prices move before they are old.
    yield* figuresOf(`p_right, ${name}: `, results, {
      wrong: 'redrawHours' in of ? 0.7 : 'medianMinutes' in of ? 0.6 : 0.4,
      error: of === market ? 0.01 : 0.015,
    });
  }
}

type Trusted = ReturnType<TrustAccount['result']>;

function* figuresOf(
  name: string,
  results: readonly Trusted[],
  most: { readonly wrong: number; readonly error: number },
): Generator<Figure> {
  const each = (value: (result: Trusted) => number) => results.map(value);
  yield figure(
    `${name}live prices right`,
    each((r) => r.rightOfAll),
  );
  yield figure(
    `${name}part no older than LIVE_INTERVAL`,
    each((r) => r.coverageByAge),
  );
  yield figure(
    `${name}right of these`,
    each((r) => r.rightByAge),
  );
  yield figure(
    `${name}wrong of as many by p_right, against by age`,
    each((r) => r.wrongAgainstAge),
    '≤',
    most.wrong,
  );
  yield figure(
    `${name}part with p_right ≥ 0.95`,
    each((r) => r.coverage),
  );
  yield figure(
    `${name}right with p_right ≥ 0.95`,
    each((r) => r.right),
  );
  yield figure(
    `${name}right with p_right ≥ 0.99`,
    each((r) => r.rightOfSurest),
    '≥',
    0.985,
  );
  yield figure(
    `${name}calibration error`,
    each((r) => r.calibrationError),
    '≤',
    most.error,
  );
}
