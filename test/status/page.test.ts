import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { html } from '../../src/status/html.ts';
import { POLICY } from '../../src/status/page-assets.ts';
import { renderPage } from '../../src/status/page.ts';
import { REASON_CODES, runbookOf } from '../../src/status/reason.ts';
import { CASES, EVERYTHING, healthOf, mirrorWith, NOW } from './cases.ts';
import { IDENTITY, pageView, sampleAt, someDay } from './views.ts';

const view = pageView;

const EVIL = `<script>alert(1)</script>"'\`&</code><img src=x onerror=alert(1)>\u0000\u202E\u009B`;
const change = { sku: EVIL, name: EVIL, size: EVIL, oldPrice: 1, newPrice: null, observedAt: NOW };
const problem = { at: NOW, level: 'warn', event: EVIL, message: EVIL, hint: EVIL, times: 2 };

const hintsOf = (source: string) => ({
  unread: 0,
  sources: [{ source, hints: 1, refreshesBroughtForward: 1, precision: 0.5, recall: 0.5, waiting: 1 }],
});

/** Lists the elements that a browser would create, each with its name and the names of its attributes. */
const tagsOf = (text: string) =>
  [...text.matchAll(/<\/?([a-z][a-z0-9]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/gi)].map(
    ([, name, attributes]) => `${name} ${(attributes ?? '').replace(/"[^"]*"/g, '').trim()}`,
  );

test('SKUs, names, sizes, outcomes and messages from others are rendered only as text', () => {
  const evil = mirrorWith({
    stats: {
      snapshotId: EVIL,
      due: [EVIL, 'error'].map((reason) => ({ reason, count: 1, oldestAgeSeconds: 1 })),
      failing: [{ sku: EVIL, failures: 1, oldestAgeSeconds: 1, error: EVIL }],
      unsteadyColumns: [EVIL],
      skus: [{ state: EVIL, priceSource: 'live', count: 1 }],
      pace: { ...CASES['backing off'].stats.pace, refusal: EVIL },
      hints: hintsOf(EVIL),
    },
    sync: { catalogFault: EVIL, manifestRefused: EVIL },
    tasks: EVERYTHING.tasks.map((one) => ({ ...one, outcome: EVIL, failures: 3 })),
  });
  const tame = mirrorWith({
    ...evil,
    stats: {
      ...evil.stats,
      snapshotId: 'x',
      due: ['x', 'error'].map((reason) => ({ reason, count: 1, oldestAgeSeconds: 1 })),
      failing: [{ sku: 'x', failures: 1, oldestAgeSeconds: 1, error: 'x' }],
      unsteadyColumns: ['x'],
      skus: [{ state: 'x', priceSource: 'live', count: 1 }],
      pace: { ...evil.stats.pace, refusal: 'x' },
      hints: hintsOf('x'),
    },
    sync: { catalogFault: 'x', manifestRefused: 'x' },
    tasks: evil.tasks.map((one) => ({ ...one, outcome: 'x' })),
  });
  const page = renderPage(view({ status: evil, changes: [change], problems: [problem] }));
  const plain = renderPage(
    view({
      status: tame,
      changes: [{ ...change, sku: 'x', name: 'x', size: 'x' }],
      problems: [{ ...problem, event: 'x', message: 'x', hint: 'x' }],
    }),
  );
  expect(tagsOf(page)).toEqual(tagsOf(plain));
  expect(page.match(/&lt;script&gt;alert\(1\)/g)?.length).toBeGreaterThan(8);
  // oxlint-disable-next-line no-control-regex
  expect(page).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E]/);
});

test('a template escapes values in text and attributes, and never escapes its own HTML twice', () => {
  const inner = html`<b title="${'"><i>'}">${'<&>'}</b>`;
  expect(html`${inner}${[inner]}${null}`.text).toBe(
    '<b title="&quot;&gt;&lt;i&gt;">&lt;&amp;&gt;</b>'.repeat(2),
  );
});

test('the policy allows the page’s own script and style, and nothing from elsewhere', () => {
  expect(POLICY).toMatch(/^default-src 'none'; script-src 'sha256-[^' ]+'; style-src 'sha256-[^' ]+'; /);
  expect(POLICY).not.toContain('unsafe');
  const page = renderPage(view({ status: EVERYTHING }));
  for (const element of ['script', 'style']) {
    const [, text = ''] = new RegExp(`<${element}>([^]*)</${element}>`).exec(page) ?? [];
    expect(POLICY).toContain(`${element}-src 'sha256-${createHash('sha256').update(text).digest('base64')}'`);
  }
  expect(page).not.toMatch(/ (?:style|on[a-z]+)=/);
  expect(page.replace('xmlns=&#39;http://www.w3.org/2000/svg&#39;', '')).not.toMatch(/https?:|\/\/[a-z]/);
});

test.each([
  ['empty database', 'No prices yet.'],
  ['first fill', 'initial load: 5,000 of 20,000 SKUs fetched'],
  ['backing off', 'active, ends'],
  ['backing off', 'suspected: the rate limit'],
  ['wrong secret suspected', 'the credential is suspected'],
  ['incident', 'the whole catalog is treated as live-priced'],
  ['stale catalog', 'the newest was refused: rejected-token'],
  ['calls failing', '5 failed in a row'],
] as const)('the page for %s says: %s', (name, text) => {
  const status = CASES[name];
  const page = renderPage(view({ status }));
  expect(page.replaceAll(/\s+/g, ' ')).toContain(text);
  expect(page).toContain(`<title>${healthOf(status).state}: prod</title>`);
});

test('without Postgres the page says so, and still shows the problems', () => {
  const page = renderPage(view({ status: null, problems: [problem] }));
  expect(page).toContain('<b id="state">broken</b>');
  expect(page).toContain('Postgres does not answer');
  expect(page).toContain('×2');
  expect(page).not.toContain('id="backlog"');
});

test('the names of a mirror, a database and a partner are rendered only as text', () => {
  const evil = { ...IDENTITY, name: EVIL, host: EVIL, partner: EVIL, database: EVIL };
  const page = renderPage(view({ identity: evil }));
  expect(tagsOf(page)).toEqual(tagsOf(renderPage(view({ identity: IDENTITY }))));
  expect(page).not.toContain('\u202E');
  const rtl = renderPage(view({ identity: { ...IDENTITY, name: 'חנות', database: `we'ird "db"` } }));
  expect(rtl).toContain('<title>healthy: חנות</title>');
  expect(rtl).toContain('<bdi>חנות</bdi>');
  expect(rtl).toContain('<bdi>we&#39;ird &quot;db&quot;</bdi>');
});

test('each reason comes with its remedy and its runbook, as a path or as a link if a base URL is set', () => {
  const status = CASES['backing off'];
  const text = (page: string) => page.replaceAll(/\s+/g, ' ');
  const plain = text(renderPage(view({ status })));
  expect(plain).toMatch(
    /own requests were 110 of 118: the rate limit is suspected <span class="hint"\s*>it resumes by itself/,
  );
  expect(plain).toContain('<code>ops/runbooks/throttled.md</code>');
  const linked = renderPage(view({ status, runbookUrlBase: 'https://wiki.example.com/r' }));
  expect(linked).toContain('href="https://wiki.example.com/r/throttled.md"');
  expect(linked).not.toContain('ops/runbooks');
});

test('every runbook that a reason names exists, and a suspected credential has its own', () => {
  const files = new Set(readdirSync(new URL('../../ops/runbooks/', import.meta.url)));
  const named = REASON_CODES.flatMap((code) =>
    (['degraded', 'broken'] as const).map((level) => runbookOf({ code, level, text: '', hint: null })),
  ).filter((file) => file !== null);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !files.has(file))).toEqual([]);
  const of = (level: 'degraded' | 'broken') => runbookOf({ code: 'refused', level, text: '', hint: null });
  expect([of('degraded'), of('broken')]).toEqual(['throttled.md', 'credential-rejected.md']);
});

test('problems and reasons come before all figures', () => {
  const page = renderPage(view({ status: CASES['backing off'], problems: [problem], samples: someDay() }));
  const places = ['id="reasons"', 'id="problems"', 'id="pace"', 'id="changes"'].map((part) =>
    page.indexOf(part),
  );
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(places[0]).toBeGreaterThan(0);
});

test('the live region gives the state and its reason, and lies outside all parts that are replaced', () => {
  const page = renderPage(view({ status: CASES['daemon long gone'] }));
  const [, said] =
    /<p id="spoken"[^>]*role="status" data-state="broken">\s*([^<]*?)\s*<\/p>/.exec(page) ?? [];
  expect(said).toMatch(/^prod is broken: no daemon is running, /);
  expect(page.indexOf('id="spoken"')).toBeLessThan(page.indexOf('data-part'));
  expect(page.match(/role="status"/g)).toHaveLength(1);
});

test('figures that are not finite do not break the page, and a large catalog fits', () => {
  const odd = [NaN, Infinity, -Infinity, 0, 14_000_000, 1e300].map((n, ago) =>
    sampleAt(ago, {
      requests: n,
      ceiling: n,
      due: n,
      pending: n,
      priceChanges: n,
      snapshot: { priced: n, fresh: n, p50: n, p95: n },
      live: { priced: 0, fresh: 0, p50: null, p95: null },
      state: 'of tomorrow',
    }),
  );
  const page = renderPage(view({ samples: odd.toReversed() }));
  expect(page).not.toMatch(/NaN|Infinity|undefined/);
  const large = renderPage(
    view({ samples: [sampleAt(1, { due: 14_000_000 }), sampleAt(0, { due: 13_900_000 })] }),
  );
  expect(large).toContain('>to 15M</text>');
});
