import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { html } from '../../src/status/html.ts';
import { POLICY } from '../../src/status/page-assets.ts';
import { type PageView, renderPage } from '../../src/status/page.ts';
import { judge } from '../../src/status/health.ts';
import { CASES, EVERYTHING, healthOf, mirrorWith, NOW } from './cases.ts';

const view = (more: Partial<PageView> = {}): PageView => {
  const status = more.status === undefined ? CASES.healthy : more.status;
  const health = status === null ? judge(null) : healthOf(status);
  return { status, health, changes: [], problems: [], now: NOW, version: '1.2.3', ...more };
};

const EVIL = `<script>alert(1)</script>"'\`&</code><img src=x onerror=alert(1)>\u0000\u202E\u009B`;
const change = { sku: EVIL, name: EVIL, size: EVIL, oldPrice: 1, newPrice: null, observedAt: NOW };
const problem = { at: NOW, level: 'warn', event: EVIL, message: EVIL, times: 2 };

/** What elements a browser would make of it: their names, and the names of their attributes. */
const tagsOf = (text: string) =>
  [...text.matchAll(/<\/?([a-z][a-z0-9]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/gi)].map(
    ([, name, attributes]) => `${name} ${(attributes ?? '').replace(/"[^"]*"/g, '').trim()}`,
  );

test('SKUs, names, sizes, outcomes and messages of others are text and nothing else', () => {
  const evil = mirrorWith({
    stats: {
      snapshotId: EVIL,
      due: [{ reason: EVIL, count: 1, oldestAgeSeconds: 1 }],
      skus: [{ state: EVIL, priceSource: 'live', count: 1 }],
      pace: { ...CASES['backing off'].stats.pace, refusal: EVIL },
    },
    sync: { catalogFault: EVIL, manifestRefused: EVIL },
    tasks: EVERYTHING.tasks.map((one) => ({ ...one, outcome: EVIL, failures: 3 })),
  });
  const tame = mirrorWith({
    ...evil,
    stats: {
      ...evil.stats,
      snapshotId: 'x',
      due: [{ reason: 'x', count: 1, oldestAgeSeconds: 1 }],
      skus: [{ state: 'x', priceSource: 'live', count: 1 }],
      pace: { ...evil.stats.pace, refusal: 'x' },
    },
    sync: { catalogFault: 'x', manifestRefused: 'x' },
    tasks: evil.tasks.map((one) => ({ ...one, outcome: 'x' })),
  });
  const page = renderPage(view({ status: evil, changes: [change], problems: [problem] }));
  const plain = renderPage(
    view({
      status: tame,
      changes: [{ ...change, sku: 'x', name: 'x', size: 'x' }],
      problems: [{ ...problem, event: 'x', message: 'x' }],
    }),
  );
  expect(tagsOf(page)).toEqual(tagsOf(plain));
  expect(page.match(/&lt;script&gt;alert\(1\)/g)?.length).toBeGreaterThan(8);
  // oxlint-disable-next-line no-control-regex
  expect(page).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E]/);
});

test('a template escapes values in text and in attributes, and HTML of its own only once', () => {
  const inner = html`<b title="${'"><i>'}">${'<&>'}</b>`;
  expect(html`${inner}${[inner]}${null}`.text).toBe(
    '<b title="&quot;&gt;&lt;i&gt;">&lt;&amp;&gt;</b>'.repeat(2),
  );
});

test('the policy allows the page’s own script and style and nothing from elsewhere', () => {
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
  ['wrong secret suspected', 'the credential is suspected'],
  ['incident', 'the whole catalog is treated as live-priced'],
  ['stale catalog', 'the newest was refused: rejected-token'],
  ['calls failing', '5 failed in a row'],
] as const)('the page of %s says: %s', (name, text) => {
  const status = CASES[name];
  const page = renderPage(view({ status }));
  expect(page.replaceAll(/\s+/g, ' ')).toContain(text);
  expect(page).toContain(`<title>${healthOf(status).state}: catalog-mirror</title>`);
});

test('without Postgres the page says so, and still shows the problems', () => {
  const page = renderPage(view({ status: null, problems: [problem] }));
  expect(page).toContain('<b id="state">broken</b>');
  expect(page).toContain('Postgres does not answer');
  expect(page).toContain('×2');
  expect(page).not.toContain('id="backlog"');
});
