import { countCatalog, countCatalogAlone, storedFigures } from './catalog-figures.ts';
import type { Sql } from './db.ts';
import type { CatalogFigures } from './stats-types.ts';

/** A count that takes no longer than this is made for every reader anew; a longer one goes on while they are shown the last. */
const MADE_AT_ONCE_MS = 25;
/** Then counting takes no more than a twentieth of the time, so that a large catalog is not scanned over and over. */
const REST_OF_A_COUNT = 19;
/** Figures older than two rests and this are nobody's present state: a reader rather waits for new ones. */
const TOO_OLD_MS = 120_000;

/** What to do with the figures that are there: show them, show them while new ones are counted, or wait for new ones. */
export type FiguresPlan = 'show' | 'show-and-count' | 'count';

/** Decides by the time since the last figures were taken and by how long that took; null: there are none. */
export function planFigures(
  last: { readonly ageMs: number; readonly countedInMs: number } | null,
): FiguresPlan {
  if (last === null || last.countedInMs <= MADE_AT_ONCE_MS) return 'count';
  const rest = last.countedInMs * REST_OF_A_COUNT;
  if (last.ageMs < rest) return 'show';
  return last.ageMs < TOO_OLD_MS + 2 * rest ? 'show-and-count' : 'count';
}

/** For one look, as a command takes it: the last figures where they still tell the present state, else new ones. */
export async function readFigures(sql: Sql): Promise<CatalogFigures> {
  const last = await storedFigures(sql);
  return last === null ||
    planFigures({ ageMs: last.ageMs, countedInMs: last.figures.countedInMs }) === 'count'
    ? await countCatalog(sql)
    : last.figures;
}

/**
 * For a daemon, which is asked again and again. Reads the figures that take a scan of the catalog: new ones where that is cheap, else the last ones, with the time they
 * were taken at, while new ones are counted beside. Daemons share them. Throws where Postgres does not answer.
 */
export function createFiguresReader(sql: Sql): () => Promise<CatalogFigures> {
  let waited: Promise<CatalogFigures> | null = null;
  let beside: Promise<void> | null = null;
  return async () => {
    const last = await storedFigures(sql);
    const plan = planFigures(last && { ageMs: last.ageMs, countedInMs: last.figures.countedInMs });
    if (last === null || plan === 'count') {
      waited ??= countCatalog(sql).finally(() => {
        waited = null;
      });
      return await waited;
    }
    if (plan === 'show-and-count')
      // Whatever keeps it from counting keeps the next reader's first statement from its answer, too.
      beside ??= countCatalogAlone(sql)
        .catch(() => {})
        .finally(() => {
          beside = null;
        });
    return last.figures;
  };
}
