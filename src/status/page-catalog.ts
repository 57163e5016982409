import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import { scopeText } from './catalog.ts';
import {
  actionableLine,
  auditLine,
  calibrationLine,
  countedLine,
  hintsLine,
  incidentLine,
  promisesLine,
  secondsBetween,
  sum,
  unsteadyLine,
} from './format.ts';
import { html, type Html } from './html.ts';
import { ago, term, warning } from './page-sections.ts';
import type { Status } from './status.ts';

const byState = (a: Status['stats']['skus'][number], b: typeof a): number =>
  a.state.localeCompare(b.state) || a.priceSource.localeCompare(b.priceSource);

/** Returns the section about the catalog: SKUs by state, scope, token, hints and promises. */
export function catalog({ stats, sync }: Status, now: Date): Html {
  const inScope = scopeText(stats);
  const unsteady = unsteadyLine(stats);
  const fault = sync.catalogFault === null ? '' : ` (the catalog routes return ${sync.catalogFault})`;
  const at = (moment: Date) => `${formatAge(secondsBetween(moment, now))} ago`;
  const counted = countedLine(stats, now);
  const hints = hintsLine(stats.hints);
  const promises = promisesLine(stats.promises);
  return html`<section id="catalog" class="card">
    <h2>Catalog</h2>
    <dl>
      <dt>state</dt>
      <dd>${stats.catalogState}${fault}</dd>
      ${term('snapshot', "the partner's build of the catalog that the mirror follows")}
      <dd id="snapshot">${stats.snapshotId ?? 'none'}</dd>
      ${term('newest built', 'when the newest build that the partner has named was made; the one above may be an older or newer one')}
      <dd>${ago(stats.snapshotGeneratedAt, now)}</dd>
      ${term('baseline', 'the last manifest, the list of all SKUs, that was applied')}
      <dd>
        ${ago(stats.manifestAppliedAt, now)}${sync.manifestRefused && warning(`the newest was refused: ${sync.manifestRefused}`)}
      </dd>
      ${term('delta', 'the last check of what changed since the snapshot')}
      <dd>
        ${ago(stats.deltaCheckedAt, now)}${sync.chainBrokenAt && warning('chain broken, waiting for a new manifest')}
      </dd>
      ${
        stats.incident === null
          ? null
          : html`<dt>incident</dt>
              <dd class="warn">${incidentLine(stats.incident, at)}</dd>`
      }
      ${
        inScope === null
          ? null
          : html`${term('scope', 'what the rules of catalog.scope say is priced; nothing else is asked for')}
              <dd>${inScope}</dd>`
      }
      <dt>SKUs</dt>
      <dd><span id="skus">${count(sum(stats.skus.map((s) => s.count)))}</span></dd>
      ${counted === null ? null : html`<dd class="dim">${counted}</dd>`}
      ${stats.skus
        .toSorted(byState)
        .map((s) => html`<dd class="dim">${count(s.count)} ${s.state}, ${s.priceSource}</dd>`)}
      ${
        unsteady &&
        html`<dt>columns</dt>
          <dd class="warn">${unsteady}</dd>`
      }
      ${term('actionable', 'SKUs whose prices may be acted on: nothing speaks against them, and they are likely right')}
      <dd>${actionableLine(stats)}</dd>
      ${term('calibration', 'how often prices were right, beside how often they were said to be')}
      <dd>${calibrationLine(stats.calibration)}</dd>
      ${term('audit', 'how well the reports of the delta and what refreshes find agree')}
      <dd>${auditLine(stats.deltaAudit)}</dd>
      ${
        hints === null
          ? null
          : html`${term('hints', 'who has told that SKUs have probably moved (catalog.hint), and how often that was so')}
              <dd>${hints}</dd>`
      }
      ${
        promises === null
          ? null
          : html`${term('promises', 'prices that are to get no older than catalog.watchlist.max_age, and how often they did not')}
              <dd>${promises}</dd>`
      }
    </dl>
  </section>`;
}
