import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../src/daemon/app.ts';
import { createStatusPages } from '../../src/daemon/status-page.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { judgeHealth, POSTGRES_AWAY } from '../../src/status/health.ts';
import { type Browser, CHROMIUM, startBrowser, type Tab } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { servePages } from '../support/page-server.ts';
import { settingsWith } from '../support/settings.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { VIEWS } from './views.ts';

/** The folder for screenshots of the page, for people to view. */
const { SCREENSHOTS } = process.env;
const EVIL = `<img src=x onerror="document.title='taken'">"'<script>document.title='taken'</script>`;

let stack: Stack;
let app: App;
let url: string;

beforeAll(async () => {
  stack = await createStack({
    sandbox: { skus: 300, liveShare: 0.1, seed: 97 },
    env: { LIVE_INTERVAL: '30m', LOG_LEVEL: 'info', MIRROR_NAME: 'the shop' },
  });
  app = await stack.start();
  url = `http://127.0.0.1:${app.httpPort}`;
  await stack.caughtUp();
  moveMarket(stack.sandbox.world, 0);
  await stack.sql`update catalog_internal.tasks set next_at = now() where task = 'delta'`;
  await stack.caughtUp();
  await addChange('100', 7_654_321);
});
afterAll(() => stack[Symbol.asyncDispose]());

/** Adds a price change of a SKU whose name is an attack. */
async function addChange(size: string, price: number): Promise<void> {
  await stack.sql`
    insert into catalog.products (sku, name, product, refreshed_at, changed_at) values (${EVIL}, ${EVIL}, '{}', now(), now())
    on conflict do nothing`;
  await stack.sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    values (${EVIL}, ${size}, 100, ${price}, now())`;
}

/** Returns what SQL says, formatted as on the page. */
async function truth() {
  const [row] = await stack.sql<[{ skus: number; owed: number; deferred: number; snapshot: string }]>`
    select skus::int, due_skus::int as owed, deferred_skus::int as deferred, snapshot_id as snapshot
    from catalog.sync_status`;
  const changes = await stack.sql<{ text: string }[]>`
    select sku || ' ' || size || ' ' || coalesce(to_char(new_price, 'FM999,999,999'), '–') as text
    from catalog.price_history order by id desc limit 20`;
  return {
    skus: row.skus.toLocaleString('en-US'),
    owed: row.owed.toLocaleString('en-US'),
    deferred: row.deferred.toLocaleString('en-US'),
    snapshot: row.snapshot,
    changes: changes.map(({ text }) => text),
  };
}

const get = (path: string, init?: RequestInit) => fetch(`${url}${path}`, init);

describe('the status page over HTTP', () => {
  test('shows what SQL says, without its script', async () => {
    const answer = await get('/');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    const told = await truth();
    // If counting takes long, the first reader is shown the last count.
    const page = await eventually(async () => {
      const text = await (await get('/')).text();
      expect(text).toContain(`<span id="skus">${told.skus}</span>`);
      return text;
    });
    expect(page).toContain('<b id="state">healthy</b>');
    expect(page).toContain(`<dd id="snapshot">${told.snapshot}</dd>`);
    expect(page.match(/<td class="number[^"]*">7,654,321<\/td>/g)).toHaveLength(1);
    expect(page).not.toContain('<img');
    expect(page).toContain('&lt;img src=x');
  });

  test('status.json is status --json plus changes and problems', async () => {
    const body = (await (await get('/status.json')).json()) as Record<string, unknown>;
    const told = await truth();
    expect(body).toMatchObject({
      state: 'healthy',
      reasons: [],
      snapshotId: told.snapshot,
      daemons: 1,
      problems: [],
    });
    expect(body['changes']).toHaveLength(20);
    expect((body['changes'] as object[])[0]).toMatchObject({
      sku: EVIL,
      name: EVIL,
      size: '100',
      oldPrice: 100,
      newPrice: 7_654_321,
    });
  });

  test('names its mirror, and shows the first sample within a minute and after a restart', async () => {
    await eventually(
      async () => (await stack.sql`select from catalog_internal.samples where skus > 290`).count > 0,
      { what: 'a sample of the filled mirror', within: 90_000 },
    );
    // A reading is shown for some seconds.
    const page = await eventually(async () => {
      const text = await (await get('/')).text();
      expect(text).not.toContain('no samples yet');
      return text;
    });
    const told = page.replaceAll(/\s+/g, ' ');
    expect(told).toContain('<bdi>the shop</bdi>');
    expect(told).toContain(`<bdi>${new URL(stack.sandbox.url).host}</bdi>`);
    const database = new URL(stack.databaseUrl);
    expect(told).toContain(
      `<bdi>${database.pathname.slice(1)} on ${database.hostname} port ${database.port}</bdi>`,
    );
    expect(page).not.toContain(stack.sandbox.secret);
    const other = await stack.start();
    const again = await (await fetch(`http://127.0.0.1:${other.httpPort}/`)).text();
    await other.stop();
    expect(again).not.toContain('no samples yet');
    expect(stack.logs.filter(({ mirror }) => mirror === 'the shop').length).toBe(stack.logs.length);
  });

  test('the page and status.json only read', async () => {
    for (const path of ['/', '/status.json'])
      for (const method of ['POST', 'PUT', 'DELETE']) expect((await get(path, { method })).status).toBe(405);
  });

  test('STATUS_PAGE=off removes the page and status.json, and nothing else', async () => {
    const other = await stack.start({ STATUS_PAGE: 'off' });
    const statuses = await Promise.all(
      ['/', '/status.json', '/livez', '/metrics'].map(
        async (path) => (await fetch(`http://127.0.0.1:${other.httpPort}${path}`)).status,
      ),
    );
    await other.stop();
    expect(statuses).toEqual([404, 404, 200, 200]);
  });
});

describe('the cost of the status page', () => {
  test('is one read of Postgres, however many readers there are', async () => {
    let reads = 0;
    const health = {
      async read() {
        reads += 1;
        return { health: judgeHealth(null), now: new Date(), status: null };
      },
    };
    const pages = createStatusPages(
      { sync: { sql: stack.sql, clock: systemClock }, config: settingsWith(), problems: () => [] },
      health,
    );
    const bodies = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => await pages.get(n % 2 === 0 ? '/' : '/status.json')?.()),
    );
    expect(reads).toBe(1);
    expect(bodies[0]?.body).toContain('<b id="state">broken</b>');
    expect(JSON.parse(bodies[1]?.body ?? '')).toMatchObject({
      state: 'broken',
      reasons: [{ code: 'postgres-unavailable', level: 'broken', text: POSTGRES_AWAY }],
    });
  });
});

describe.skipIf(CHROMIUM === null).concurrent('the status page in Chromium', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  const shown = async (tab: Tab) =>
    await tab.evaluate<Awaited<ReturnType<typeof truth>> & { state: string }>(`(() => {
      const text = (what) => document.querySelector(what).textContent.trim();
      const rows = [...document.querySelectorAll('#changes tbody tr')].map((row) => [1, 2, 4].map((n) => row.cells[n].textContent.trim()).join(' '));
      return { skus: text('#skus'), owed: text('#owed'), deferred: text('#deferred'), snapshot: text('#snapshot'),
        state: text('#state'), changes: rows };
    })()`);
  const picture = async (tab: Tab, name: string) => {
    if (SCREENSHOTS === undefined) return;
    await mkdir(SCREENSHOTS, { recursive: true });
    await writeFile(join(SCREENSHOTS, `${name}.png`), await tab.screenshot());
  };

  test('shows what SQL says, treats names as text, and refreshes itself', async () => {
    const tab = await browser.open(`${url}/`, { width: 1280, scheme: 'light' });
    expect(await shown(tab)).toEqual({ ...(await truth()), state: 'healthy' });
    expect(await tab.evaluate(`document.querySelectorAll('main img, main script').length`)).toBe(0);
    await tab.evaluate(`document.querySelector('#changes').dataset.first = 'yes'`);
    await tab.evaluate(`document.querySelector('#spoken').dataset.first = 'yes'`);
    await tab.evaluate(
      `(document.querySelector('#words').open = true, document.querySelector('#words summary').focus())`,
    );
    await addChange('200', 815);
    await eventually(async () => (await shown(tab)).changes[0] === `${EVIL} 200 815`, {
      what: 'the new change',
      within: 15_000,
    });
    expect(await shown(tab)).toEqual({ ...(await truth()), state: 'healthy' });
    expect(await tab.evaluate(`document.querySelector('#changes').dataset.first ?? 'replaced'`)).toBe(
      'replaced',
    );
    // The live region stays in place, so nothing is announced twice; unfolded parts stay open and keep the focus.
    expect(await tab.evaluate(`document.querySelector('#spoken').dataset.first`)).toBe('yes');
    expect(await tab.evaluate(`document.activeElement.parentElement.id`)).toBe('words');
    expect(await tab.evaluate(`document.querySelector('#words').open`)).toBe(true);
    expect(await tab.evaluate('document.title')).toBe('healthy: the shop');
    expect(tab.errors).toEqual([]);
    await picture(tab, 'light-1280');
  });

  const background = `getComputedStyle(document.body).backgroundColor`;
  test.each([390, 320, 768, 1280])('fits a screen of %i pixels, light and dark', async (width) => {
    const [light, dark] = await Promise.all([
      browser.open(`${url}/`, { width, scheme: 'light' }),
      browser.open(`${url}/`, { width, scheme: 'dark' }),
    ]);
    for (const tab of [light, dark]) {
      expect(await tab.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      expect(tab.errors).toEqual([]);
    }
    expect([await light.evaluate(background), await dark.evaluate(background)]).toEqual([
      'rgb(244, 245, 247)',
      'rgb(18, 21, 26)',
    ]);
    await picture(light, `light-${width}`);
    await picture(dark, `dark-${width}`);
  });

  test('announces each change of state once, and shows times in the viewer’s time zone', async () => {
    const states = ['healthy', 'healthy', 'degraded', 'degraded', 'healthy'];
    let served = 0;
    const pages = await servePages(() => {
      const at = Math.min(served, states.length - 1);
      served += 1;
      const view = states[at] === 'healthy' ? VIEWS.healthy : VIEWS.degraded;
      return { ...view, now: new Date(view.now.getTime() + 5000 * at) };
    });
    const look = { width: 1280, scheme: 'light', zone: 'Asia/Bangkok' } as const;
    const tab = await browser.open(pages.urlOf('swinging'), look);
    await tab.evaluate(`(() => {
      window.said = [];
      new MutationObserver(() => said.push(document.querySelector('#spoken').textContent))
        .observe(document.querySelector('#spoken'), { childList: true, characterData: true, subtree: true });
    })()`);
    expect(await tab.evaluate(`document.querySelector('header time.clock').textContent`)).toMatch(
      /^2026-11-21 19:00:00 (GMT\+7|ICT)$/,
    );
    expect(await tab.evaluate(`document.querySelector('#pace .tick').textContent`)).toBe('18:15');
    await eventually(async () => served > 6, { what: 'all states', within: 60_000 });
    expect(await tab.evaluate('said')).toEqual([
      expect.stringMatching(/^prod is degraded: throttled or refused/),
      'prod is healthy',
    ]);
    expect(tab.errors).toEqual([]);
    await tab.close();
    await pages[Symbol.asyncDispose]();
  }, 120_000);

  test('says when the daemon no longer answers', async () => {
    const other = await stack.start();
    const look = { width: 390, scheme: 'dark' } as const;
    const tab = await browser.open(`http://127.0.0.1:${other.httpPort}/`, look);
    const lost = `!document.querySelector('#lost').hidden`;
    expect(await tab.evaluate(lost)).toBe(false);
    await other.stop();
    await eventually(async () => await tab.evaluate<boolean>(lost), { what: 'the word', within: 15_000 });
    await picture(tab, 'lost-390');
  });
});
