import type { MirrorStats } from '../../status/stats.ts';
import type { HintSourceStats } from '../../store/sellers/hint-sources.ts';
import { gauge, storedCounter, unlisted } from './declaration.ts';

/** A number of each source of hints that is known now; their names are sellers' own. */
const bySource =
  (of: (source: HintSourceStats) => number) =>
  ({ hints }: MirrorStats) =>
    hints.sources.map((source) => ({ labels: { source: source.source }, value: of(source) }));

/** What sellers have hinted at, and how often they were right; part of MIRROR_METRICS. */
export const HINT_METRICS = {
  hints_total: storedCounter({
    help: 'Hints of sellers (catalog.hint) that the mirror has read, by source. Sources beyond the fiftieth are one, other.',
    labels: unlisted('source'),
    read: bySource(({ hints }) => hints),
  }),
  hint_refreshes_total: storedCounter({
    help: 'Refreshes of live SKUs that hints have brought forward, by source.',
    labels: unlisted('source'),
    read: bySource(({ refreshesBroughtForward }) => refreshesBroughtForward),
  }),
  hint_precision_ratio: gauge({
    help:
      "How often a SKU had moved that the source hinted at, beyond what the SKU's own rate says " +
      '(catalog.hint_sources); 0.3 before refreshes have tested it.',
    labels: unlisted('source'),
    read: bySource(({ precision }) => precision),
  }),
  hint_recall_ratio: gauge({
    help: 'Part of all moves of live SKUs that the source told of (catalog.hint_sources).',
    labels: unlisted('source'),
    read: bySource(({ recall }) => recall),
  }),
  waiting_hints: gauge({
    help: 'Hints that the mirror has read and whose live SKU has not been refreshed since, by source.',
    labels: unlisted('source'),
    read: bySource(({ waiting }) => waiting),
  }),
  unread_hints: gauge({
    help: 'Hints that sellers have given and the mirror has not read yet; catalog.hint takes no more where 100,000 wait.',
    read: (s) => s.hints.unread,
  }),
};
