import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import type { PriceChange } from '../store/history/changes.ts';
import type { Sample } from '../store/status/samples.ts';
import { courseOf, stateStrips } from './charts.ts';
import type { Health } from './health.ts';
import { html, type Html } from './html.ts';
import { GLOSSARY, ICON_COLOURS, SCRIPT_ELEMENT, STYLE_ELEMENT } from './page-assets.ts';
import { catalog } from './page-catalog.ts';
import {
  ago,
  backlog,
  changeRate,
  fillProgress,
  freshness,
  pace,
  priceAges,
  prose,
  syncs,
} from './page-sections.ts';
import { type Reason, runbookOf } from './reason.ts';
import type { Status } from './status.ts';

export interface ShownProblem {
  readonly at: Date;
  readonly level: string;
  readonly event: string;
  readonly message: string;
  readonly hint: string | null;
  readonly times: number;
}

/** Which mirror a page is about, and which daemon serves it. None of it is secret. */
export interface Identity {
  /** MIRROR_NAME, or the host's name. */
  readonly name: string;
  readonly host: string;
  /** The partner's address: host and port of PARTNER_BASE_URL. */
  readonly partner: string;
  /** Name, host and port of the database. */
  readonly database: string;
  readonly version: string;
  /** How long this daemon has been running. */
  readonly upSeconds: number;
}

/** What the page shows. `status` is null while Postgres cannot be read, or before the first count. */
export interface PageView {
  readonly identity: Identity;
  readonly status: Status | null;
  readonly health: Health;
  /** Those of the last day, oldest first. */
  readonly samples: readonly Sample[];
  readonly changes: readonly PriceChange[];
  readonly problems: readonly ShownProblem[];
  readonly now: Date;
  /** RUNBOOK_URL_BASE: where links to runbooks lead. Null: their paths in the repository are named. */
  readonly runbookUrlBase: string | null;
}

/**
 * Renders a self-contained page that can be read without its script. Pure. Everything that changes is in elements
 * with `data-part`, each of which the script replaces as a whole; the live region is not among them, because a
 * screen reader announces only changes in a region that stays.
 */
export function renderPage(view: PageView): string {
  const { status, health, now, identity } = view;
  const icon =
    `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><circle cx='50%25' cy='50%25' r='45%25' ` +
    `fill='%23${ICON_COLOURS[health.state]}'/></svg>`;
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${health.state}: ${identity.name}</title>
        <link rel="icon" href="${icon}" />
        <noscript><meta http-equiv="refresh" content="10" /></noscript>
        ${STYLE_ELEMENT}
      </head>
      <body>
        <div id="lost" role="alert" hidden>
          The daemon does not answer. This is the last known status, of
          <time class="clock" datetime="${now.toISOString()}">${timeText(now)}</time>.
        </div>
        <p id="spoken" class="unseen" role="status" data-state="${health.state}">${spoken(view)}</p>
        ${head(view)}
        <main>
          ${problems(view)} ${status === null ? null : cards(view, status)} ${changes(view)}
          <details id="words" class="card">
            <summary>What the words mean</summary>
            <dl>
              ${GLOSSARY.map(
                ([word, meaning]) =>
                  html`<dt>${word}</dt>
                    <dd>${prose(meaning)}</dd>`,
              )}
            </dl>
          </details>
        </main>
        <footer>
          catalog-mirror ${identity.version}, read-only. For programs: <code>/status.json</code>,
          <code>/metrics</code>, <code>/readyz</code>. Charts show the worst of each minute (last hour) or of
          five (last day); where they are grey, no daemon took a sample.
        </footer>
        ${SCRIPT_ELEMENT}
      </body>
    </html> `;
  return page.text;
}

/** Returns what a screen reader says when the state changes. */
function spoken({ identity, health }: PageView): string {
  const [worst] = health.reasons;
  return `${identity.name} is ${health.state}${worst === undefined ? '' : `: ${whatOf(worst)}`}`;
}

const timeText = (at: Date): string => `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;

function head(view: PageView): Html {
  const { identity, health, status, now, runbookUrlBase } = view;
  const { state, reasons } = health;
  const facts: readonly (readonly [string, string])[] = [
    ['host', identity.host],
    ['partner', identity.partner],
    ['database', identity.database],
    ['up for', formatAge(identity.upSeconds)],
  ];
  return html`<header class="${state}" data-part="state">
    <h1><b id="state">${state}</b> <bdi>${identity.name}</bdi></h1>
    <ul class="facts">
      ${facts.map(([name, value]) => html`<li><span class="dim">${name}</span> <bdi>${value}</bdi></li>`)}
      <li>
        <span class="dim">as of</span>
        <time class="clock" datetime="${now.toISOString()}">${timeText(now)}</time>
      </li>
    </ul>
    ${state === 'filling' && status !== null ? fillProgress(status, now) : null}
    ${
      reasons.length === 0
        ? null
        : html`<ul id="reasons">
            ${reasons.map((reason) => reasonItem(reason, runbookUrlBase))}
          </ul>`
    }
    ${stateStrips(courseOf(view.samples, now))}
  </header>`;
}

/** Returns what is wrong, without what to do about it. */
const whatOf = ({ text, hint }: Reason): string =>
  hint !== null && text.endsWith(`; ${hint}`) ? text.slice(0, -hint.length - 2) : text;

function reasonItem(reason: Reason, base: string | null): Html {
  const runbook = runbookOf(reason);
  return html`<li class="is-${reason.level}">
    ${prose(whatOf(reason))}
    ${
      reason.hint === null && runbook === null
        ? null
        : html`<span class="hint"
            >${reason.hint === null ? '' : prose(reason.hint)}${runbook === null ? null : runbookLink(runbook, base)}</span
          >`
    }
  </li>`;
}

const runbookLink = (file: string, base: string | null): Html =>
  base === null
    ? html` <span class="runbook">Runbook: <code>ops/runbooks/${file}</code></span>`
    : html` <a class="runbook" href="${base}/${file}" rel="noreferrer"
        >Runbook: ${file.replace('.md', '')}</a
      >`;

/** Problems that are shown without opening the details. */
const SHOWN = 3;

function problems({ problems: rows, now }: PageView): Html {
  const item = (row: ShownProblem) =>
    html`<li class="level-${row.level}">
      ${ago(row.at, now)}${row.times > 1 ? html` <b>×${count(row.times)}</b>` : null} ${row.message}
      <code class="dim">${row.event}</code
      >${row.hint === null ? null : html`<span class="hint">${prose(row.hint)}</span>`}
    </li>`;
  const [newest, older] = [rows.slice(0, SHOWN), rows.slice(SHOWN)];
  return html`<section id="problems" class="card" data-part="problems">
    <h2>Recent problems <span class="dim">in the log of this daemon</span></h2>
    ${
      rows.length === 0
        ? html`<p class="dim">None since it started.</p>`
        : html`<ul>
            ${newest.map(item)}
          </ul>`
    }
    ${
      older.length === 0
        ? null
        : html`<details id="older-problems">
            <summary>${count(older.length)} more</summary>
            <ul>
              ${older.map(item)}
            </ul>
          </details>`
    }
  </section>`;
}

/** Returns the cards, each in its place in the grid, whatever it contains. */
function cards({ samples, now }: PageView, status: Status): Html {
  const course = courseOf(samples, now);
  const places = [
    pace(status, now, course),
    backlog(status, now, course),
    freshness(status, course),
    changeRate(course),
    priceAges(status, course, 'live'),
    priceAges(status, course, 'snapshot'),
    syncs(status, now),
    catalog(status, now),
  ];
  return html`<div class="cards" data-part="cards">${places}</div>`;
}

function changes({ changes: rows, now, status }: PageView): Html | null {
  if (status === null) return null;
  const thb = (price: number | null) => (price === null ? '–' : count(price));
  const way = ({ oldPrice, newPrice }: PriceChange) =>
    oldPrice === null || newPrice === null ? '' : newPrice > oldPrice ? 'up' : 'down';
  const table = html`<table>
    <thead>
      <tr>
        <th scope="col">when</th>
        <th scope="col">SKU</th>
        <th scope="col">size</th>
        <th scope="col" class="number">from</th>
        <th scope="col" class="number">to, THB</th>
        <th scope="col" class="optional">product</th>
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            <td>${ago(row.observedAt, now)}</td>
            <td><code>${row.sku}</code></td>
            <td class="any size">${row.size}</td>
            <td class="number">${thb(row.oldPrice)}</td>
            <td class="number ${way(row)}">${thb(row.newPrice)}</td>
            <td class="optional dim any">${row.name ?? ''}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
  return html`<section id="changes" class="card" data-part="changes">
    <h2>Latest price changes</h2>
    ${rows.length === 0 ? html`<p class="dim">None recorded yet.</p>` : table}
  </section>`;
}
