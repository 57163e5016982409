import { each, gauge } from './declaration.ts';

/** What is promised of the age of prices, and what became of it; part of MIRROR_METRICS. */
export const PROMISE_METRICS = {
  promises: gauge({
    help:
      'SKUs whose age is promised (catalog.watchlist.max_age), by whether the account can keep it; no series ' +
      'while nothing is promised.',
    labels: each({ feasible: ['yes', 'no'] }),
    read: ({ promises: { promises, feasible } }) =>
      promises === 0
        ? []
        : [
            { labels: { feasible: 'yes' }, value: feasible },
            { labels: { feasible: 'no' }, value: promises - feasible },
          ],
  }),
  promises_kept_ratio: gauge({
    help: 'Part of the promises of the last day that were kept (catalog.promises); no series while there were none.',
    read: ({ promises: { cases, kept } }) => (cases === 0 ? null : kept / cases),
  }),
};
