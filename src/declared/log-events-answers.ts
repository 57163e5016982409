import { line } from './log-event.ts';

const EVIDENCE = ['kind', 'live', 'skus', 'asked', 'answered', 'deferred'] as const;

const TEN_MINUTES_MS = 600_000;

/** What answers show about prices, products and the partner's live source. */
export const ANSWERS = {
  'size-type.changed': line(
    'warn',
    'size_type was corrected: the size keys of these SKUs have a new meaning',
    ['count', 'skus'],
    'see catalog.product_history, and check anything that prices by size. Counts cover ten minutes',
  ),
  'prices.implausible': line(
    ['warn', 'debug'],
    'implausible prices received; they are not actionable until a second answer confirms them',
    ['count', 'skus', 'oddities'],
    'nothing: a second answer five minutes later decides. `catalog-mirror show SKU` says what is odd; ' +
      '`catalog-mirror refresh --accept SKU` if it is the price',
    TEN_MINUTES_MS,
  ),
  'prices.lost': line(
    ['info', 'debug'],
    'all prices of SKUs, or of most of their sizes, are gone and nothing has told of it; a second answer decides',
    ['count', 'skus', 'oddities'],
    null,
    TEN_MINUTES_MS,
  ),
  'mass-move.began': line(
    'warn',
    'prices move implausibly in masses (`kind`): none that moved is actionable before a second answer says the same; ' +
      '`factor-of-some`: only those of SKUs that have moved by `factor` wait',
    ['kind', 'answers', 'implausible', 'move', 'factor', 'skus'],
    'look at some of them with `catalog-mirror show SKU`; if the market has moved, nothing, or `catalog-mirror ' +
      'refresh --accept` to skip the second answers; else tell the partner. With `factor` many have moved by it ' +
      '(natural logarithm), as after a change of unit or currency: second answers end nothing, `refresh --accept` does',
  ),
  'mass-move.ended': line('info', 'prices move as usual again', ['lastedSeconds']),
  'mass-move.failed': line(
    ['warn', 'debug'],
    'whether prices move implausibly in masses could not be said to Postgres; the next answer tries it again',
    ['problem'],
    'nothing if it happens once; else find what Postgres objects to: a lock, or a full disk',
    TEN_MINUTES_MS,
  ),
  'member.muted': line(
    'warn',
    "a member of products (or of prices' entries) moves with each refresh: its moves are no history and no changes from now on",
    ['part', 'path'],
    'nothing, unless you need it: catalog.products has its newest value; catalog_internal.muted_members lists all such members',
  ),
  'member.unmuted': line('info', 'a member that was muted rests now: its moves are history again', [
    'part',
    'path',
  ]),
  'column.unsteady': line(
    'warn',
    "a column of catalog.products changes with each refresh of many SKUs, as where the partner's servers disagree: " +
      'each change is history and in catalog.changes',
    ['path'],
    'compare old_value and new_value of the field in catalog.product_history, and tell the partner; do not sort or ' +
      'price by the column until then. It ends by itself (`column.steady`), and `status` has it meanwhile',
  ),
  'column.steady': line('info', 'a column of catalog.products no longer changes with each refresh', ['path']),
  'live-outage.began': line(
    'warn',
    "the partner's live source fails: live SKUs are in errors, or calls with them fail, and others work as usual",
    [],
    'live SKUs stay due as they are, and one is tried once a minute; once it is answered the most valuable come ' +
      'first. Their prices get older until then; ask the partner if it lasts',
  ),
  'late-prices.began': line(
    'warn',
    "prices lag behind the delta's reports: answers with the prices of before were wrong when they were seen again",
    ['looks', 'found'],
    'each such answer is seen again after 17 minutes, and its prices are as likely right until then as these looks ' +
      'say; tell the partner, whose cache it probably is',
  ),
  'late-prices.ended': line('info', "prices no longer lag behind the delta's reports", ['minutes']),
  'live-outage.ended': line('info', "the partner's live source works again", ['minutes']),
  'incident.began': line(
    'warn',
    'incident: the whole catalog is live-priced',
    ['because', 'minutes', ...EVIDENCE],
    'calls are smaller, SKUs are ordered by expected gain, sweeps are paused; prices are older until it ends by itself',
  ),
  'incident.ended': line('info', 'incident over: the catalog is priced as usual again', [
    'because',
    'minutes',
    ...EVIDENCE,
  ]),
} as const;
