/** Words of the page that a newcomer cannot know, with what they mean. Between backticks: names. */
export const GLOSSARY: readonly (readonly [word: string, meaning: string])[] = [
  ['SKU', 'one product of the catalog, in all its sizes'],
  ['fresh', 'the price is no older than its target, and no refresh of it is pending'],
  [
    'snapshot',
    "the partner's build of the whole catalog; also SKUs whose price changes it reports (snapshot-priced)",
  ],
  [
    'live',
    'SKUs that the partner prices on request, and whose changes it never reports: they are refreshed by age (`LIVE_INTERVAL`)',
  ],
  ['manifest, baseline', 'the list of all SKUs, and the last one that was applied'],
  ['delta', 'the list of what changed since the last check (`DELTA_INTERVAL`)'],
  [
    'due',
    'a refresh of the SKU is pending. By reason: `new` (never priced), `changed` (reported by the delta), ' +
      '`live` and `sweep` (by age), `unlisted` (in no manifest), `missed` (the delta has left ' +
      'out a change of it), `deferred` and `error` (asked again later), ' +
      '`metadata`, `scope` (asked because a rule of `catalog.scope` needs its metadata)',
  ],
  ['deferred', 'the partner put the SKU off; it is asked again after `DEFERRED_INTERVAL`'],
  ['back-off', 'all requests pause after a rejected one (`PARTNER_BACKOFF`), and resume at a lower rate'],
  [
    'paused',
    'somebody has asked for no requests at all (`catalog-mirror pause`), until its end or `catalog-mirror resume`',
  ],
  [
    'ceiling',
    'requests a minute that the mirror sends at most at present: its share of the account limit, lower after a rejection',
  ],
  ['window', 'the time that the account limit is for (`PARTNER_RATE_WINDOW`)'],
  ['budget', 'live SKUs in one bulk call, as learned from the answers'],
  ['incident', 'the partner prices the whole catalog live, so prices get older until it is over'],
  [
    'actionable',
    'nothing speaks against the prices (`doubt`), and they are right with `ACTIONABLE_CONFIDENCE` at least (`p_right`)',
  ],
  [
    'calibration',
    'of the last seven days, how many of the refreshes found the prices as they were held, beside how many ' +
      'should have by `p_right`; by what tells of their moves: `live` (by age), `unlisted` (in no manifest), ' +
      '`snapshot` (reported by the delta), `reported` (has been, not asked since), `random` (live, drawn at ' +
      'random), `unreported` (the delta told of nothing), `again` (reported, answered with nothing new, and ' +
      'asked once more)',
  ],
  [
    'audit',
    'of the reports of the delta, those that a refresh confirmed and those after which nothing had changed; of ' +
      'changes, those that a refresh saw before the delta, those it never reported, and those still open',
  ],
  [
    'hints',
    'what your other services have told by `catalog.hint`: how often each source was right that a SKU had ' +
      'moved, and the part of all moves that it told of',
  ],
  [
    'promises',
    'SKUs of the watchlist that are asked for again before their price is older than `max_age`: what that takes ' +
      'of the requests, and how often it was kept (`catalog.promises`)',
  ],
];
