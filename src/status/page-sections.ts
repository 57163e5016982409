import { formatAge } from '../lib/duration.ts';
import type { TaskState } from '../store/tasks.ts';
import {
  ageBands,
  auditLine,
  count,
  countedLine,
  estimateBacklog,
  estimateLine,
  incidentLine,
  interval,
  liveLine,
  percent,
  secondsBetween,
  sum,
  targetSeconds,
} from './format.ts';
import { html, type Html } from './html.ts';
import type { Status } from './status.ts';

/* What the page shows of a status, a section each. */

/** A moment as its distance from now; the moment itself shows on pointing. */
export function ago(at: Date | null, now: Date): Html {
  if (at === null) return html`never`;
  const seconds = secondsBetween(at, now);
  const words = seconds < 0 ? `in ${formatAge(-seconds)}` : `${formatAge(seconds)} ago`;
  return html`<time datetime="${at.toISOString()}" title="${at.toISOString()}">${words}</time>`;
}

function bar(name: string, part: number, whole: number, shown: string, cssClass: string): Html {
  const width =
    whole > 0 ? Math.min(100, Math.max(part > 0 ? 0.5 : 0, (100 * part) / whole)).toFixed(2) : '0';
  return html`<span>${name}</span
    ><svg aria-hidden="true">
      <rect class="track" width="100%" height="100%" rx="3" />
      <rect class="${cssClass}" width="${width}%" height="100%" rx="3" /></svg
    ><span>${shown}</span>`;
}

export function freshness({ stats, targets }: Status): Html {
  const classes = stats.priceAge.map(({ priceSource, ages, oldestSeconds }) => {
    const target = targetSeconds(priceSource, targets);
    const fresh = stats.freshSkus.find((f) => f.priceSource === priceSource)?.count ?? 0;
    return html`<h3>${priceSource}: ${percent(fresh, ages.count)} of ${count(ages.count)} fresh</h3>
      <p class="dim">target ${interval(target)}, oldest ${formatAge(oldestSeconds)}</p>
      <div class="bars">
        ${ageBands(ages, target).map((band) =>
          bar(
            band.label,
            band.count,
            ages.count,
            `${count(band.count)}${band.late ? ' over' : ''}`,
            band.late ? 'late' : 'fresh',
          ),
        )}
      </div>`;
  });
  return html`<section id="freshness">
    <h2>Freshness</h2>
    ${classes.length === 0 ? html`<p class="dim">No prices yet.</p>` : classes}
    <p class="dim">
      oldest metadata ${formatAge(stats.oldestMetadataAgeSeconds)}, target
      ${interval(targets.metadataSeconds)}
    </p>
  </section>`;
}

export function backlog(status: Status, now: Date): Html {
  const { stats } = status;
  const estimate = estimateBacklog(status, now);
  const words = estimateLine(estimate);
  const waiting = stats.deferredSkus === 0 ? '' : `, oldest ${formatAge(stats.oldestDeferredAgeSeconds)}`;
  return html`<section id="backlog">
    <h2>Backlog</h2>
    <p><b id="owed">${count(estimate.owed)}</b> SKUs due now${words === '' ? '' : `, ${words}`}</p>
    <div class="bars">
      ${stats.due.map((due) => bar(due.reason, due.count, estimate.owed, `${count(due.count)}, oldest ${formatAge(due.oldestAgeSeconds)}`, ''))}
    </div>
    <p class="dim"><span id="deferred">${count(stats.deferredSkus)}</span> deferred${waiting}</p>
  </section>`;
}

export function pace({ stats, mostInWindow, failedCalls, daemons }: Status, now: Date): Html {
  const { pace: p } = stats;
  const backingOff = p.backingOffUntil !== null && p.backingOffUntil > now;
  return html`<section id="pace">
    <h2>Pace</h2>
    <div class="bars">
      ${bar('used', p.usedInWindow, mostInWindow, `${count(p.usedInWindow)} of ${count(mostInWindow)}`, '')}
    </div>
    <p class="dim">requests in the last window, out of the mirror’s share</p>
    <dl>
      <dt>ceiling</dt>
      <dd>${count(Math.round(p.ceilingPerMinute))} per minute</dd>
      <dt>back-off</dt>
      <dd id="backoff">
        ${backingOff ? html`<span class="warn">active, ends ${ago(p.backingOffUntil, now)}</span>` : 'none'}
      </dd>
      <dt>rejections</dt>
      <dd>${p.refusal === null ? 'none' : html`<span class="warn">${p.refusal}</span>`}</dd>
      <dt>calls</dt>
      <dd>
        ${failedCalls === 0 ? 'succeeding' : html`<span class="warn">${failedCalls} failed in a row</span>`}
      </dd>
      <dt>live</dt>
      <dd>${liveLine(stats)}</dd>
      <dt>daemons</dt>
      <dd>${daemons}</dd>
    </dl>
  </section>`;
}

export function syncs({ tasks }: Status, now: Date): Html {
  const outcome = (task: TaskState) => {
    if (task.running) return html`running`;
    if (task.failures === 0) return html`${task.outcome ?? 'not run yet'}`;
    return html`<span class="warn">${task.outcome ?? 'failed'}, ${task.failures} in a row</span>`;
  };
  const rows = tasks
    .filter(({ task }) => task !== 'reprice')
    .map(
      (task) =>
        html`<tr>
          <td>${task.task}</td>
          <td>${outcome(task)}</td>
          <td>${ago(task.succeededAt, now)}</td>
          <td>
            ${task.running ? 'now' : secondsBetween(now, task.nextAt) <= 0 ? 'now' : ago(task.nextAt, now)}
          </td>
        </tr>`,
    );
  return html`<section id="syncs">
    <h2>Syncs and tasks</h2>
    <table>
      <thead>
        <tr>
          <th>task</th>
          <th>outcome</th>
          <th>last success</th>
          <th>next</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </section>`;
}

const byState = (a: Status['stats']['skus'][number], b: typeof a): number =>
  a.state.localeCompare(b.state) || a.priceSource.localeCompare(b.priceSource);

export function catalog({ stats, sync }: Status, now: Date): Html {
  const fault = sync.catalogFault === null ? '' : ` (the catalog routes return ${sync.catalogFault})`;
  const iso = (at: Date) => `${at.toISOString()} (${formatAge(secondsBetween(at, now))} ago)`;
  const counted = countedLine(stats, now);
  return html`<section id="catalog">
    <h2>Catalog</h2>
    <dl>
      <dt>state</dt>
      <dd>${stats.catalogState}${fault}</dd>
      <dt>snapshot</dt>
      <dd id="snapshot">${stats.snapshotId ?? 'none'}</dd>
      <dt>generated</dt>
      <dd>${ago(stats.snapshotGeneratedAt, now)}</dd>
      <dt>baseline</dt>
      <dd>
        ${ago(stats.manifestAppliedAt, now)}${sync.manifestRefused === null ? null : html` <span class="warn">the newest was refused: ${sync.manifestRefused}</span>`}
      </dd>
      <dt>delta</dt>
      <dd>
        ${ago(stats.deltaCheckedAt, now)}${sync.chainBrokenAt === null ? null : html` <span class="warn">chain broken, waiting for a new manifest</span>`}
      </dd>
      ${
        stats.incident === null
          ? null
          : html`<dt>incident</dt>
              <dd class="warn">${incidentLine(stats.incident, iso)}</dd>`
      }
      <dt>SKUs</dt>
      <dd><span id="skus">${count(sum(stats.skus.map((s) => s.count)))}</span></dd>
      ${
        counted === null
          ? null
          : html`<dt></dt>
              <dd class="dim">${counted}</dd>`
      }
      ${stats.skus.toSorted(byState).map(
        (s) =>
          html`<dt></dt>
            <dd class="dim">${count(s.count)} ${s.state}, ${s.priceSource}</dd>`,
      )}
      <dt>audit</dt>
      <dd>${auditLine(stats.deltaAudit)}</dd>
    </dl>
  </section>`;
}
