import { createHash } from 'node:crypto';
import { Html } from './html.ts';

/* Style and script of the status page. Both are inline; the policy allows them by their hashes, and nothing else. */

const STYLE = `
:root { color-scheme: light dark; --page: #f4f5f7; --card: #fff; --line: #dfe2e7; --text: #1b1f27; --dim: #5c6675;
  --track: #e8ebef; --ok: #1f7a4d; --warn: #9a5b00; --bad: #b3261e; --fill: #3b6fb6; --fresh: #2f9e68; --late: #d98a1c; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12151a; --card: #1b2028; --line: #2d3440; --text: #e7eaf0; --dim: #9aa5b5; --track: #2a313c;
    --ok: #57c78f; --warn: #eeb04f; --bad: #ff8a80; --fill: #6ea3ea; --fresh: #3fb27c; --late: #d9953a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
main, footer { max-width: 76rem; margin: 0 auto; padding: 1rem; }
footer { color: var(--dim); font-size: .85rem; padding-top: 0; }
header { background: var(--card); border: 1px solid var(--line); border-left: .4rem solid var(--ok); border-radius: .5rem;
  padding: .8rem 1rem; margin-bottom: 1rem; }
header.filling { border-left-color: var(--fill); } header.degraded { border-left-color: var(--warn); } header.broken { border-left-color: var(--bad); }
h1 { font-size: 1.35rem; margin: 0; } h1 small { color: var(--dim); font-size: .85rem; font-weight: 400; margin-left: .5rem; }
.healthy h1 b { color: var(--ok); } .filling h1 b { color: var(--fill); } .degraded h1 b { color: var(--warn); } .broken h1 b { color: var(--bad); }
header ul { margin: .4rem 0 0; padding-left: 1.1rem; } header p { margin: .3rem 0 0; color: var(--dim); }
h2 { font-size: 1rem; margin: 0 0 .6rem; } h3 { font-size: .9rem; margin: .9rem 0 .3rem; } h2 + h3 { margin-top: 0; }
.cards { columns: 3 21rem; column-gap: 1rem; margin-bottom: 1rem; }
section { break-inside: avoid; margin-bottom: 1rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .9rem 1rem; min-width: 0; overflow-x: auto; }
section p { margin: .3rem 0; } .dim { color: var(--dim); } .warn { color: var(--warn); }
dl { display: grid; grid-template-columns: auto 1fr; gap: .2rem .9rem; margin: 0; } dt { color: var(--dim); } dd { margin: 0; }
dd, dt, li, p, h3, code, .any { overflow-wrap: anywhere; }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: .15rem .7rem; align-items: center; font-size: .9rem; }
.bars span:nth-child(3n) { text-align: right; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: .7rem; } rect { fill: var(--fill); } rect.track { fill: var(--track); }
rect.fresh { fill: var(--fresh); } rect.late { fill: var(--late); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; color: var(--dim); font-weight: 500; } th, td { padding: .2rem .7rem .2rem 0; vertical-align: top; }
th.number + th, td.number + td { padding-left: .4rem; }
td { border-top: 1px solid var(--line); } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: .9em ui-monospace, monospace; } .up { color: var(--bad); } .down { color: var(--ok); }
time { white-space: nowrap; } .size { min-width: 3.5rem; }
#lost { display: none; background: var(--bad); color: var(--card); padding: .5rem 1rem; text-align: center; }
.lost #lost { display: block; }
@media (max-width: 34rem) { main { padding: .6rem; } time { white-space: normal; } .optional { display: none; } th, td { padding-right: .45rem; } }
`;

/** Fetches the page again and replaces its parts, so that only the server renders. A selection of text is kept. */
const SCRIPT = `
const take = (page, what) => {
  const [now, next] = [document.querySelector(what), page.querySelector(what)];
  if (now === null || next === null) throw new Error('no ' + what);
  now.replaceWith(document.adoptNode(next));
};
const refresh = async () => {
  try {
    if (getSelection().isCollapsed && !document.hidden) {
      const answer = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(8000) });
      if (!answer.ok) throw new Error('status ' + answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      document.title = page.title;
      take(page, 'link[rel=icon]');
      take(page, 'main');
      document.body.classList.remove('lost');
    }
  } catch {
    document.body.classList.add('lost');
  }
  setTimeout(refresh, 5000);
};
setTimeout(refresh, 5000);
`;

export const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);
export const SCRIPT_ELEMENT = new Html(`<script>${SCRIPT}</script>`);

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Content-Security-Policy of the page: its own script and style, its own daemon, and nothing else. */
export const POLICY = [
  "default-src 'none'",
  `script-src ${hashOf(SCRIPT)}`,
  `style-src ${hashOf(STYLE)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
