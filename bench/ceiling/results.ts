import { figure, type Figure } from '../frame/figure.ts';
import { PARTNERS } from './limiters.ts';
import { type Answers, simulateCeiling } from './simulate.ts';

/**
 * Answers as they usually come, and where live computations are slow: then up to twenty calls are under way at a time.
 */
const QUICK: Answers = { fromMs: 100, toMs: 1000 };
const SLOW: Answers = { fromMs: 1000, toMs: 10_000 };

const FIRST_HOUR = 0.91;
const ALL = 0.95;
const ALL_WHERE_IT_MOVES = 0.9;
const DEFERRED = 0.01;

/**
 * For each partner the parts of the allowed computations that were used, and the part of the asked SKUs that was
 * deferred: the worst of the seeds.
 */
export function* ceilingFigures(seeds: readonly number[], hours: number): Generator<Figure> {
  for (const partner of PARTNERS) {
    const runs = seeds.map((seed) => simulateCeiling(partner, { hours, answers: QUICK, seed }));
    const each = (value: (run: (typeof runs)[number]) => number) => runs.map(value);
    const [name, all] = [partner.name, partner.moves ? ALL_WHERE_IT_MOVES : ALL];
    const firstHour = each((run) => run.firstHour);
    yield figure(`${name}: used in the first hour`, firstHour, '≥', FIRST_HOUR, true);
    yield figure(
      `${name}: used in ${hours} hours`,
      each((run) => run.all),
      '≥',
      all,
      true,
    );
    yield figure(
      `${name}: deferred`,
      each((run) => run.deferred),
      '≤',
      DEFERRED,
      true,
    );
  }
  for (const partner of PARTNERS) {
    const runs = seeds.map((seed) => simulateCeiling(partner, { hours, answers: SLOW, seed }));
    yield figure(
      `${partner.name}, slow: used in ${hours} hours`,
      runs.map(({ all }) => all),
    );
    yield figure(
      `${partner.name}, slow: deferred`,
      runs.map(({ deferred }) => deferred),
    );
  }
}
