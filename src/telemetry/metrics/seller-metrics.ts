import type { MirrorStats } from '../../status/status.ts';
import type { FollowerNow } from '../../store/history/follower-list.ts';
import type { HintSourceStats } from '../../store/sellers/hint-sources.ts';
import { each, gauge, storedCounter, unlisted } from './declaration.ts';

/** Promised ages of prices, and how they were kept; part of MIRROR_METRICS. */
export const PROMISE_METRICS = {
  promises: gauge({
    help: 'SKUs whose age is promised (catalog.watchlist.max_age), by whether the account can keep it.',
    labels: each({ feasible: ['yes', 'no'] }),
    read: ({ promises: { promises, feasible } }) => [
      { labels: { feasible: 'yes' }, value: feasible },
      { labels: { feasible: 'no' }, value: promises - feasible },
    ],
  }),
  promises_kept_ratio: gauge({
    help: 'Part of the promises of the last day that were kept (catalog.promises); no series while there were none.',
    read: ({ promises: { cases, kept } }) => (cases === 0 ? null : kept / cases),
  }),
};

/** Reads a number of each source of hints that is known now. Their names are the sellers' own. */
const bySource =
  (of: (source: HintSourceStats) => number) =>
  ({ hints }: MirrorStats) =>
    hints.sources.map((source) => ({ labels: { source: source.source }, value: of(source) }));

/** Hints of sellers, and how often they were right; part of MIRROR_METRICS. */
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

/** Reads a value of each follower (fifty at most). Their names are the seller's own. */
const byFollower =
  (of: (follower: FollowerNow) => number | null) =>
  ({ followers }: MirrorStats) =>
    followers.map((follower) => ({
      labels: { follower: follower.name, delivery: follower.delivery },
      value: of(follower),
    }));

/** Progress of the followers that have a name (`catalog-mirror follow`); part of MIRROR_METRICS. */
export const FOLLOWER_METRICS = {
  follower_behind_changes: gauge({
    help:
      'Changes that a follower (`catalog-mirror follow`) has not delivered yet, those that its filter leaves out ' +
      'included; 10,000 at most are counted. No series where its position is lost.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ behind }) => behind),
  }),
  follower_behind_seconds: gauge({
    help:
      'How long the first change that a follower has not delivered has been known, or in a first copy how long ' +
      'nothing was delivered; 0: nothing waits. No series where its position is lost.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ behindSeconds }) => behindSeconds),
  }),
  follower_position_lost: gauge({
    help: '1 where the position of a follower is no longer kept or is of another history, so that it has to begin again, else 0.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ lost }) => (lost ? 1 : 0)),
  }),
  follower_failures: gauge({
    help: 'Deliveries of a follower in a row that have failed; 0 after a success.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ failures }) => failures),
  }),
  follower_dead_letters: gauge({
    help: 'Batches of changes that the receiver of a follower has refused for good and that wait for `follow --resend`.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ deadLetters }) => deadLetters),
  }),
};
