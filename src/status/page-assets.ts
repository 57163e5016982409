import { createHash } from 'node:crypto';
import { Html } from './html.ts';
import type { MirrorState } from './reason.ts';

/**
 * The script of the status page. It fetches the page again and replaces the parts that differ, so that only the
 * server renders. Open details stay open, the focus stays where it is, a text selection is kept, and times are
 * shown in the viewer's time zone. The live region stays in the page, and its text changes only with the state.
 */
const PAGE_SCRIPT = `
const zoned = (root) => {
  const pad = (n) => String(n).padStart(2, '0');
  const clock = (at) => pad(at.getHours()) + ':' + pad(at.getMinutes());
  const full = (at) => at.getFullYear() + '-' + pad(at.getMonth() + 1) + '-' + pad(at.getDate()) +
    ' ' + clock(at) + ':' + pad(at.getSeconds());
  const zone = new Intl.DateTimeFormat([], { timeZoneName: 'short' }).formatToParts().find(({ type }) => type === 'timeZoneName').value;
  for (const time of root.querySelectorAll('time')) {
    const at = new Date(time.dateTime);
    if (time.className === 'clock') time.textContent = full(at) + ' ' + zone;
    else time.title = full(at) + ' ' + zone;
  }
  for (const text of root.querySelectorAll('text[data-at]')) text.textContent = clock(new Date(text.dataset.at));
};
const stops = 'a[href], summary';
const replace = (now, next) => {
  if (now.outerHTML === next.outerHTML) return;
  for (const open of now.querySelectorAll('details[open]')) next.querySelector('#' + open.id)?.setAttribute('open', '');
  const focused = [...now.querySelectorAll(stops)].indexOf(document.activeElement);
  now.replaceWith(document.adoptNode(next));
  if (focused >= 0) next.querySelectorAll(stops)[focused]?.focus({ preventScroll: true });
};
const part = (page, name) => page.querySelector('[data-part=' + name + ']');
const show = (page) => {
  zoned(page);
  document.title = page.title;
  replace(document.querySelector('link[rel=icon]'), page.querySelector('link[rel=icon]'));
  const names = ['state', 'problems', 'cards', 'changes'];
  if (names.some((name) => (part(document, name) === null) !== (part(page, name) === null))) {
    replace(document.querySelector('header'), page.querySelector('header'));
    replace(document.querySelector('main'), page.querySelector('main'));
  } else for (const name of names) if (part(document, name) !== null) replace(part(document, name), part(page, name));
  const [spoken, next] = [document.querySelector('#spoken'), page.querySelector('#spoken')];
  if (spoken.dataset.state !== next.dataset.state) {
    spoken.dataset.state = next.dataset.state;
    spoken.textContent = next.textContent;
  }
};
const refresh = async () => {
  const lost = document.querySelector('#lost');
  try {
    if (getSelection().isCollapsed && !document.hidden) {
      const answer = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(8000) });
      if (!answer.ok) throw new Error('status ' + answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const since = lost.querySelector('time');
      since.dateTime = page.querySelector('#lost time').dateTime;
      show(page);
      zoned(lost);
      lost.hidden = true;
    }
  } catch {
    lost.hidden = false;
  }
  setTimeout(refresh, 5000);
};
zoned(document);
setTimeout(refresh, 5000);
`;

/*
 * Style and script of the status page. Both are inline; the policy allows them by their hashes, and nothing else.
 */

/** The colours of a state: in light, in dark, and in the tab's icon. A new state needs only a line here. */
const STATE_COLOURS: Readonly<Record<MirrorState, readonly [light: string, dark: string, icon: string]>> = {
  healthy: ['#1f7a4d', '#57c78f', '2f9e68'],
  filling: ['#2f62a8', '#7fb0f0', '3b6fb6'],
  degraded: ['#8f5300', '#eeb04f', 'd98a1c'],
  paused: ['#6b4fa0', '#b9a2ee', '7d5fb8'],
  broken: ['#b3261e', '#ff8a80', 'd0362c'],
};

export const ICON_COLOURS = Object.fromEntries(
  Object.entries(STATE_COLOURS).map(([state, [, , icon]]) => [state, icon]),
) as Readonly<Record<MirrorState, string>>;

const states = Object.entries(STATE_COLOURS);
const colours = (of: 0 | 1) => states.map(([state, colour]) => `--${state}: ${colour[of]};`).join(' ');
const stateStyles = states
  .map(
    ([state]) =>
      `header.${state} { border-left-color: var(--${state}); } .${state} h1 b { color: var(--${state}); } ` +
      `li.is-${state}::marker { color: var(--${state}); } path.is-${state} { fill: var(--${state}); }`,
  )
  .join('\n');

const STYLE = `
:root { color-scheme: light dark; --page: #f4f5f7; --card: #fff; --line: #dfe2e7; --text: #1b1f27; --dim: #576070;
  --track: #e8ebef; --first: #2f62a8; --second: #a3480f; --area: #b9cdea; --limit: #b3261e; --target: #5c6675; --mark: #f3d9a4;
  --gap: #eceef2;
  ${colours(0)} }
@media (prefers-color-scheme: dark) {
  :root { --page: #12151a; --card: #1b2028; --line: #2d3440; --text: #e7eaf0; --dim: #9aa5b5; --track: #2a313c;
    --first: #7fb0f0; --second: #f0a35e; --area: #2f4a70; --limit: #ff8a80; --target: #9aa5b5; --mark: #5c4718; --gap: #262c36;
    ${colours(1)} }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
header, main, footer { max-width: 80rem; margin: 0 auto; }
main, footer { padding: 0 1rem 1rem; } footer { color: var(--dim); font-size: .85rem; }
header, .card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .9rem 1rem; }
header { border-left: .4rem solid var(--target); margin: 1rem auto; width: calc(100% - 2rem); max-width: 78rem; }
.card { margin-bottom: 1rem; min-width: 0; }
${stateStyles}
h1 { font-size: 1.35rem; margin: 0; font-weight: 600; } h1 bdi { margin-left: .4rem; }
h2 { font-size: 1rem; margin: 0 0 .4rem; } h2 .dim { font-weight: 400; }
.facts { list-style: none; margin: .3rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; font-size: .9rem; }
#reasons, #problems ul { margin: .6rem 0 0; padding-left: 1.1rem; } #problems ul { margin-top: .2rem; font-size: .92rem; }
#problems li { margin-bottom: .3rem; }
.hint { display: block; color: var(--dim); } .hint::before { content: '→ '; } a { color: var(--first); }
.level-warn::marker { color: var(--degraded); } .level-error::marker, .level-fatal::marker { color: var(--broken); }
.cards { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; margin-bottom: 1rem; } .cards .card { margin: 0; }
@media (min-width: 60rem) { .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
section p { margin: .2rem 0; } .dim { color: var(--dim); } .warn { color: var(--degraded); }
.figure { min-height: 1.9rem; } .figure b { font-size: 1.25rem; font-weight: 600; }
dl { display: grid; grid-template-columns: minmax(5.5rem, max-content) 1fr; gap: .2rem .9rem; margin: .5rem 0 0; font-size: .92rem; }
dt { color: var(--dim); } dt[title] { text-decoration: underline dotted; text-underline-offset: .2em; cursor: help; }
dd { margin: 0; grid-column: 2; }
dd, dt, li, p, h1, code, .any, bdi, summary { overflow-wrap: anywhere; }
#backlog dl, #pace dl { min-height: 9.5rem; align-content: start; }
svg { display: block; width: 100%; overflow: hidden; }
.charts { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .9rem; margin-top: .4rem; }
@media (max-width: 22rem) { .cards .charts { grid-template-columns: minmax(0, 1fr); } }
.chart { height: 7rem; } .strip { height: 1.7rem; margin-top: .5rem; }
svg text { fill: var(--dim); font-size: 11px; } text.tick { text-anchor: middle; } text.top { text-anchor: end; }
text.none { text-anchor: middle; font-size: 12px; }
.line { fill: none; stroke-width: 1.6px; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.line.first { stroke: var(--first); } .line.second { stroke: var(--second); } .area { fill: var(--area); }
.line.limit { stroke: var(--limit); stroke-dasharray: 6 3; } .line.target { stroke: var(--target); stroke-dasharray: 2 3; }
.axis { stroke: var(--line); fill: none; vector-effect: non-scaling-stroke; } .gap { fill: var(--gap); } .mark { fill: var(--mark); }
.key { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1rem; margin: .2rem 0 0; padding: 0; font-size: .82rem; color: var(--dim); }
.key li::before { content: ''; display: inline-block; width: 1rem; height: 0; margin-right: .35rem; vertical-align: middle;
  border-top: 2px solid var(--first); }
.key .second::before { border-color: var(--second); } .key .target::before { border-top: 2px dotted var(--target); }
.key .limit::before { border-top: 2px dashed var(--limit); }
.key .area::before { border: 0; height: .6rem; background: var(--area); }
.key .backoff::before, .key .incident::before { border: 0; height: .6rem; background: var(--mark); }
.progress { margin-top: .6rem; } .progress svg { height: .8rem; } .progress p { margin: .2rem 0 0; }
rect.track { fill: var(--track); } rect.done { fill: var(--filling); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; color: var(--dim); font-weight: 500; } th, td { padding: .2rem .7rem .2rem 0; vertical-align: top; }
th.number + th, td.number + td { padding-left: .4rem; }
td { border-top: 1px solid var(--line); } .number { text-align: right; white-space: nowrap; }
code { font: .9em ui-monospace, monospace; } .up { color: var(--broken); } .down { color: var(--healthy); }
time { white-space: nowrap; } .size { min-width: 3.5rem; } summary { cursor: pointer; }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
#lost { background: var(--broken); color: var(--card); padding: .5rem 1rem; text-align: center; }
@media (max-width: 34rem) { main, footer { padding: 0 .6rem .6rem; } header { margin: .6rem auto; width: calc(100% - 1.2rem); }
  time { white-space: normal; } .optional { display: none; } th, td { padding-right: .45rem; }
  dl { grid-template-columns: minmax(4.5rem, max-content) 1fr; } }
`;

export const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);
export const SCRIPT_ELEMENT = new Html(`<script>${PAGE_SCRIPT}</script>`);

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The page's Content-Security-Policy: its own script and style, its own daemon, and nothing else. */
export const POLICY = [
  "default-src 'none'",
  `script-src ${hashOf(PAGE_SCRIPT)}`,
  `style-src ${hashOf(STYLE)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Words of the page that a newcomer cannot know, with their meanings. Names are between backticks. */
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
