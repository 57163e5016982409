import { formatAge } from '../lib/duration.ts';
import { count, plural } from '../lib/format.ts';
import type { TaskState } from '../store/ledger/tasks.ts';
import { isKnown } from './chart.ts';
import {
  ageChart,
  backlogChart,
  changesChart,
  changesInHour,
  type Course,
  FRESH_OBJECTIVE,
  freshChart,
  latest,
  requestsChart,
} from './charts.ts';
import {
  estimateBacklog,
  estimateLine,
  failingLine,
  interval,
  liveLine,
  percentOf,
  secondsBetween,
  skusText,
  sum,
  targetSeconds,
} from './format.ts';
import { html, type Html } from './html.ts';
import type { Status } from './status.ts';

/* The cards of the status page. Every card keeps its place, whatever it contains. */

/** Shows a moment as its distance from now, and the moment itself as a tooltip. */
export function ago(at: Date | null, now: Date): Html {
  if (at === null) return html`never`;
  const seconds = secondsBetween(at, now);
  const words = seconds < 0 ? `in ${formatAge(-seconds)}` : `${formatAge(seconds)} ago`;
  return html`<time datetime="${at.toISOString()}" title="${at.toISOString()}">${words}</time>`;
}

/** Shows commands and names between backticks as code. */
export function prose(text: string): readonly Html[] {
  return text
    .split(/`([\w .:/=-]+)`/)
    .map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

/** Returns the warning that follows a value. */
export const warning = (text: string): Html => html` <span class="warn">${text}</span>`;

/** Returns the key to the lines and marks of a chart. */
const key = (...entries: readonly (readonly [look: string, name: string])[]): Html =>
  html`<ul class="key">
    ${entries.map(([look, name]) => html`<li class="${look}">${name}</li>`)}
  </ul>`;

/** Returns a term with its meaning as a tooltip; the page also explains it below. */
export const term = (word: string, meaning: string): Html => html`<dt title="${meaning}">${word}</dt>`;

/** Returns the section about requests, as HTML with all values escaped. Pure, like those below. */
export function pace({ stats, failedCalls, daemons }: Status, now: Date, course: Course): Html {
  const { pace: p } = stats;
  const backingOff = p.backingOffUntil !== null && p.backingOffUntil > now;
  const { refused } = p;
  return html`<section id="pace" class="card">
    <h2>Requests</h2>
    <p class="figure"><b>${count(p.usedInWindow)}</b> of ${count(p.mostInWindow)} in the last window</p>
    ${requestsChart(course)}
    ${key(
      ['first', 'of the mirror'],
      ['area', 'with other services'],
      ['target', 'ceiling'],
      ['limit', 'account limit'],
      ['backoff', 'back-off'],
    )}
    <dl>
      ${term('ceiling', 'requests a minute that the mirror sends at most at present; lower after a rejection')}
      <dd>${count(Math.round(p.ceilingPerMinute))} per minute</dd>
      ${term('back-off', 'pause after a rejected request (PARTNER_BACKOFF)')}
      <dd id="backoff">
        ${backingOff ? html`<span class="warn">active, ends ${ago(p.backingOffUntil, now)}</span>` : 'none'}
      </dd>
      ${term('rejections', 'answers 403, 401 or 500 of the authorizer since a request last succeeded')}
      <dd>
        ${
          refused === null
            ? 'none'
            : html`<span class="warn"
                >${count(refused.times)}, since ${ago(refused.since, now)}; suspected:
                ${SUSPECTED[refused.suspected]}</span
              >`
        }
      </dd>
      ${term('bulk calls', 'requests for many SKUs at once, by which prices are refreshed')}
      <dd>
        ${failedCalls === 0 ? 'succeeding' : html`<span class="warn">${count(failedCalls)} failed in a row</span>`}
      </dd>
      ${term('live SKUs', 'SKUs that the partner prices on request, which it does for few in each call')}
      <dd>${liveLine(stats)}</dd>
      ${term('daemons', 'processes that work on this database')}
      <dd>${daemons}</dd>
    </dl>
  </section>`;
}

const SUSPECTED = {
  rate: 'the rate limit',
  'other-traffic-or-credential': 'other traffic, or the credential',
  credential: 'the credential',
  account: 'the account is not configured',
} as const;

/** Returns the section about due SKUs, and how long they take. */
export function backlog(status: Status, now: Date, course: Course): Html {
  const { stats } = status;
  const estimate = estimateBacklog(status, now);
  const words = estimateLine(estimate);
  const failing = failingLine(stats);
  const waiting = stats.deferredSkus === 0 ? '' : `, oldest ${formatAge(stats.oldestDeferredAgeSeconds)}`;
  return html`<section id="backlog" class="card">
    <h2>Backlog</h2>
    <p class="figure"><b id="owed">${count(estimate.owed)}</b> ${plural(estimate.owed, 'SKU')} due now</p>
    ${backlogChart(course)} ${key(['first', 'due'], ['second', 'never priced'], ['backoff', 'back-off'])}
    <dl>
      ${term('estimate', 'how long what is due now takes at the present rate')}
      <dd>${words === '' ? 'nothing to do' : words}</dd>
      ${stats.due.map(
        (due) =>
          html`<dt>${due.reason}</dt>
            <dd>${count(due.count)}, oldest ${formatAge(due.oldestAgeSeconds)}</dd>`,
      )}
      ${
        failing &&
        html`<dt>failing</dt>
          <dd class="warn">${prose(failing)}</dd>`
      }
      ${term('deferred', 'SKUs that the partner put off; they are asked again after DEFERRED_INTERVAL')}
      <dd><span id="deferred">${count(stats.deferredSkus)}</span>${waiting}</dd>
    </dl>
  </section>`;
}

/** Returns the section about how many prices are fresh. */
export function freshness({ stats, targets }: Status, course: Course): Html {
  const fresh = (source: string) =>
    stats.freshSkus.find(({ priceSource }) => priceSource === source)?.count ?? 0;
  const all = sum(stats.priceAge.map(({ ages }) => ages.count));
  const unpriced = sum(stats.skus.filter(({ state }) => state === 'pending').map(({ count: n }) => n));
  return html`<section id="freshness" class="card">
    <h2>Freshness</h2>
    ${
      all === 0
        ? html`<p class="figure">No prices yet.</p>`
        : html`<p class="figure">
            <b>${percentOf(sum(stats.freshSkus.map(({ count: n }) => n)), all)}</b> of ${count(all)} prices
            are fresh${unpriced === 0 ? '' : `; ${skusText(unpriced)} without a price`}
          </p>`
    }
    ${freshChart(course)}
    ${key(['first', 'snapshot'], ['second', 'live'], ['target', `objective ${FRESH_OBJECTIVE} %`], ['incident', 'incident'])}
    <dl>
      ${stats.priceAge.map(
        ({ priceSource, ages, oldestSeconds }) =>
          html`<dt>${priceSource}</dt>
            <dd>
              ${percentOf(fresh(priceSource), ages.count)} of ${count(ages.count)}; target
              ${interval(targetSeconds(priceSource, targets))}, oldest ${formatAge(oldestSeconds)}
            </dd>`,
      )}
      ${term('metadata', 'names, brands and sizes of products')}
      <dd>
        oldest ${formatAge(stats.oldestMetadataAgeSeconds)}, target ${interval(targets.metadataSeconds)}
      </dd>
    </dl>
  </section>`;
}

/** Returns the section about price changes. */
export function changeRate(course: Course): Html {
  const changes = changesInHour(course);
  return html`<section id="change-rate" class="card">
    <h2>Price changes</h2>
    <p class="figure"><b>${count(changes)}</b> ${plural(changes, 'change')} in the last hour</p>
    ${changesChart(course)} ${key(['area', 'price changes a minute'])}
  </section>`;
}

/** Returns the section about the ages of a cohort's prices. */
export function priceAges({ targets }: Status, course: Course, cohort: 'snapshot' | 'live'): Html {
  const name = cohort === 'live' ? 'live' : 'snapshot-priced';
  const { p50 = null, p95 = null } = latest(course)?.[cohort] ?? {};
  const target = interval(targetSeconds(cohort, targets));
  return html`<section id="age-${cohort}" class="card">
    <h2>Age of ${name} prices</h2>
    ${
      !isKnown(p50) || !isKnown(p95)
        ? html`<p class="figure">No figures at present; target ${target}</p>`
        : html`<p class="figure">
            <b>${formatAge(p95)}</b> or less for 95 of 100, ${formatAge(p50)} for half; target ${target}
          </p>`
    }
    ${ageChart(course, cohort, targets)}
    ${key(['first', 'half are younger'], ['second', '95 of 100 are younger'], ['target', 'target'], ['incident', 'incident'])}
  </section>`;
}

/** Returns the section about manifest, delta and the other tasks. */
export function syncs({ tasks }: Status, now: Date): Html {
  const outcome = (task: TaskState) => {
    if (task.running) return html`running`;
    if (task.failures === 0) return html`${task.outcome ?? 'not run yet'}`;
    return html`<span class="warn">${task.outcome ?? 'failed'}, ${count(task.failures)} in a row</span>`;
  };
  const rows = tasks
    .filter(({ task }) => task !== 'reprice')
    .map(
      (task) =>
        html`<tr>
          <td>${task.task}</td>
          <td class="any">${outcome(task)}</td>
          <td>${ago(task.succeededAt, now)}</td>
          <td>${task.running || secondsBetween(now, task.nextAt) <= 0 ? 'now' : ago(task.nextAt, now)}</td>
        </tr>`,
    );
  return html`<section id="syncs" class="card">
    <h2>Syncs and tasks</h2>
    <table>
      <thead>
        <tr>
          <th scope="col">task</th>
          <th scope="col">outcome</th>
          <th scope="col">last success</th>
          <th scope="col">next</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </section>`;
}

/** Shows the progress of the initial load, with a bar. */
export function fillProgress(status: Status, now: Date): Html {
  const total = sum(status.stats.skus.map((row) => row.count));
  const pending = sum(status.stats.skus.filter(({ state }) => state === 'pending').map((row) => row.count));
  const part = total === 0 ? 0 : (100 * (total - pending)) / total;
  const words = estimateLine(estimateBacklog(status, now));
  return html`<div class="progress">
    <svg aria-hidden="true">
      <rect class="track" width="100%" height="100%" rx="4" />
      <rect class="done" width="${part.toFixed(2)}%" height="100%" rx="4" />
    </svg>
    <p>
      ${percentOf(total - pending, total)} of ${skusText(total)} fetched${words === '' ? '' : `, ${words}`}
    </p>
  </div>`;
}
