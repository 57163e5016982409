import type { PriceChange } from '../store/changes.ts';
import { count } from './format.ts';
import { html, type Html } from './html.ts';
import { SCRIPT_ELEMENT, STYLE_ELEMENT } from './page-assets.ts';
import { ago, backlog, catalog, freshness, pace, syncs } from './page-sections.ts';
import type { Status } from './status.ts';
import type { Health } from './health.ts';
import type { MirrorState } from './reason.ts';

export interface ShownProblem {
  readonly at: Date;
  readonly level: string;
  readonly event: string;
  readonly message: string;
  readonly times: number;
}

/** What the page shows; `status` null while Postgres cannot be read, or was never counted. */
export interface PageView {
  readonly status: Status | null;
  readonly health: Health;
  readonly changes: readonly PriceChange[];
  readonly problems: readonly ShownProblem[];
  readonly now: Date;
  readonly version: string;
}

const ICONS: Readonly<Record<MirrorState, string>> = {
  healthy: '2f9e68',
  filling: '3b6fb6',
  degraded: 'd98a1c',
  broken: 'd0362c',
};

/** Renders a self-contained page that can be read without its script. Pure. */
export function renderPage(view: PageView): string {
  const { status, health, now } = view;
  const icon = `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><circle cx='50%25' cy='50%25' r='45%25' fill='%23${ICONS[health.state]}'/></svg>`;
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${health.state}: catalog-mirror</title>
        <link rel="icon" href="${icon}" />
        <noscript><meta http-equiv="refresh" content="10" /></noscript>
        ${STYLE_ELEMENT}
      </head>
      <body>
        <div id="lost" role="alert">The daemon does not answer. This is the last known status.</div>
        <main>
          ${head(health, now)}
          <div class="cards">
            ${status === null ? null : [freshness(status), backlog(status, now), pace(status, now), syncs(status, now), catalog(status, now)]}
          </div>
          ${changes(view)} ${problems(view)}
        </main>
        <footer>
          catalog-mirror ${view.version}, read-only. For programs: <code>/status.json</code>,
          <code>/metrics</code>, <code>/readyz</code>.
        </footer>
        ${SCRIPT_ELEMENT}
      </body>
    </html> `;
  return page.text;
}

function head({ state, reasons }: Health, now: Date): Html {
  return html`<header class="${state}" role="status">
    <h1><b id="state">${state}</b><small>catalog-mirror</small></h1>
    ${
      reasons.length === 0
        ? null
        : html`<ul>
            ${reasons.map(({ text }) => html`<li>${text}</li>`)}
          </ul>`
    }
    <p>
      as of
      <time datetime="${now.toISOString()}">${now.toISOString().slice(0, 19).replace('T', ' ')} UTC</time>
    </p>
  </header>`;
}

function changes({ changes: rows, now, status }: PageView): Html | null {
  if (status === null) return null;
  const baht = (price: number | null) => (price === null ? '–' : count(price));
  const way = ({ oldPrice, newPrice }: PriceChange) =>
    oldPrice === null || newPrice === null ? '' : newPrice > oldPrice ? 'up' : 'down';
  const table = html`<table>
    <thead>
      <tr>
        <th>when</th>
        <th>SKU</th>
        <th>size</th>
        <th class="number">from</th>
        <th class="number">to</th>
        <th class="optional">product</th>
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            <td>${ago(row.observedAt, now)}</td>
            <td><code>${row.sku}</code></td>
            <td class="any size">${row.size}</td>
            <td class="number">${baht(row.oldPrice)}</td>
            <td class="number ${way(row)}">${baht(row.newPrice)}</td>
            <td class="optional dim any">${row.name ?? ''}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
  return html`<section id="changes">
    <h2>Recent price changes</h2>
    ${rows.length === 0 ? html`<p class="dim">None recorded yet.</p>` : table}
  </section>`;
}

function problems({ problems: rows, now }: PageView): Html {
  const table = html`<table>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            <td>${ago(row.at, now)}</td>
            <td>
              <code>${row.event}</code>${row.times > 1 ? ` ×${row.times}` : ''}<br /><span class="dim"
                >${row.message}</span
              >
            </td>
          </tr>`,
      )}
    </tbody>
  </table>`;
  return html`<section id="problems">
    <h2>Recent problems <span class="dim">of this daemon</span></h2>
    ${rows.length === 0 ? html`<p class="dim">None since it started.</p>` : table}
  </section>`;
}
