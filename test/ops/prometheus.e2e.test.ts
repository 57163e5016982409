import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../src/daemon/app.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import { pauseRequests, resumeRequests } from '../../src/store/sellers/pause.ts';
import { refreshManifest } from '../../src/store/sellers/refresh.ts';
import { bendLines, letAge, runNow } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { nudge } from '../support/market.ts';
import { runProgram } from '../support/process.ts';
import { type Course, hasPrometheus, type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { createStack, type Stack } from '../support/stack.ts';
import {
  ALERT_RULES,
  type Expression,
  MARK_EXPRESSIONS,
  PANEL_EXPRESSIONS,
  RECORDING_RULES,
  RULE_EXPRESSIONS,
  selectorsOf,
} from './expressions.ts';

/*
 * A daemon at work, with everything going wrong that can, watched by a real Prometheus: every expression of the
 * panels and rules has plausible answers. Skipped if there is no Prometheus.
 */

const HOURS = 3 * 3600;
/** The name of the job in the test's Prometheus. */
const JOB = 'catalog-mirror';
const SWEEP_SECONDS = 2 * 3600;
/** The plausible values of a panel, by unit. */
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  percentunit: [0, 1],
  bool: [0, 1],
  s: [0, HOURS],
  cpm: [0, 100_000],
  short: [0, 10_000],
  bytes: [1e6, 4e9],
};
/** By metric or panel, if the range of the unit does not fit. */
const RANGES_OF: Readonly<Record<string, readonly [number, number]>> = {
  'panel "Claimed, less found" A': [-1, 1],
  'catalog_mirror:filling': [0, 1],
  'catalog_mirror:backing_off': [0, 1],
  'catalog_mirror:due_skus': [0, 1000],
  'catalog_mirror:unfresh:ratio': [0, 1],
};
const BURN = [0, 20] as const;

/** Fills in variables as Grafana does, for a Prometheus that scrapes every two seconds. */
const filledIn = (expr: string) =>
  expr
    .replaceAll('$__rate_interval', '10s')
    .replaceAll('$instance', '.+')
    .replaceAll(/\$job\b|\$\{job:regex\}/g, JOB);

let stack: Stack;
let app: App;
let prometheus: Prometheus;

const has = async (expr: string) => (await prometheus.now(expr)).length > 0;
const seen = (expr: string) => eventually(() => has(expr), { what: expr, within: 120_000 });

/** Moves the prices of `count` snapshot-priced SKUs. */
function move(count: number): void {
  const { world } = stack.sandbox;
  const some = [...world.truth().values()].filter(
    (row) => row.priceSource === 'snapshot' && row.listed && Object.keys(row.sizeMap).length > 0,
  );
  for (const row of some.slice(0, count)) nudge(world, row);
}

/** Gives hints like a service that is right half of the time. */
async function hint(): Promise<void> {
  const { sandbox, sql } = stack;
  for (const { sku } of sandbox.world.hints(0).hints) await sql`select catalog.hint(${sku}, 'orders')`;
  await seen('catalog_mirror_hints_total > 0');
}

/**
 * Puts the mirror through the events of a bad week, one after the other. Counts of the catalog may be some seconds
 * old, so SQL is asked if it matters.
 */
async function live(): Promise<void> {
  const { sandbox, sql } = stack;
  const audit = async () => {
    const [row] = await sql<[{ waiting: number; first: number }]>`
      select moves_waiting::int as waiting, moves_seen_first::int as first from catalog.delta_audit`;
    return row;
  };
  // Two snapshots, so that a refresh knows what the delta should have reported; then moves that a refresh sees
  // first.
  for (let i = 0; i < 2; i += 1) {
    sandbox.world.buildSnapshot();
    await runNow(stack, app, 'delta');
  }
  move(7);
  await letAge(sql, SWEEP_SECONDS);
  await eventually(async () => (await audit()).waiting === 7, { what: 'moves that a refresh sees first' });
  sandbox.world.buildSnapshot();
  await runNow(stack, app, 'delta');
  await eventually(async () => (await audit()).first === 7, { what: 'their reports' });

  // Reported changes, some of them in answers that do not add up, and failing calls.
  sandbox.faults.add({ route: 'bulk', times: 2, status: 500, body: { Message: 'fault' } });
  sandbox.faults.add({
    route: 'bulk',
    times: 3,
    mutate: (json) => ({ ...json, not_found: [...(json['not_found'] as unknown[]), 'NEVER-ASKED', 17] }),
  });
  sandbox.world.step(60);
  sandbox.world.buildSnapshot();
  await runNow(stack, app, 'delta');
  await seen('catalog_mirror_change_latency_seconds_count > 10');
  // Counted by the daemon and written every ten seconds.
  await seen('catalog_mirror_calibration_looks > 0');

  await hint();
  await sql`
    insert into catalog.watchlist (sku, max_age) select sku, interval '30 seconds' from catalog.skus where state = 'priced' order by sku limit 5`;
  await letAge(sql, SWEEP_SECONDS);
  await runNow(stack, app, 'maintenance');
  await seen('sum(catalog_mirror_promise_cases_total) > 0');
  await runNow(stack, app, 'maintenance');
  await seen('catalog_mirror_promises_kept_ratio');

  // Too few live refreshes, and more invalid lines than the ticket's threshold.
  await eventually(async () => (await readLivePlan(sql)).ceiling.perMinute !== null, { what: 'a ceiling' });
  // Learning the exact value would take several of the partner's windows, which are minutes.
  await sql`update catalog_internal.live_ceiling set per_minute = 60, since = now(), step = step + 1`;
  await runNow(stack, app, 'live-plan');
  sandbox.faults.add({ route: 'file', file: bendLines((lines) => [...lines, ...Array(14).fill('{')]) });
  await refreshManifest(sql);
  await runNow(stack, app, 'manifest');

  await follow();

  // Requests of another service of the account, and rejections until they are visible.
  await sql`select catalog.take_request('orders')`;
  sandbox.faults.add({ route: '*', times: Infinity, status: 403, body: { message: 'Forbidden' } });
  await letAge(sql, SWEEP_SECONDS);
  await seen('catalog_mirror_refused_since_timestamp_seconds');
  sandbox.faults.clear();
  await seen('catalog_mirror_refusals == 0 and catalog_mirror_backing_off == 0');
  await seen('ALERTS{alertname="CatalogMirrorQuarantine", alertstate="firing"}');

  // An operator's pause.
  await pauseRequests(sql, { forMs: 3_600_000, by: 'operator' });
  await seen(
    'catalog_mirror_paused_since_timestamp_seconds and catalog_mirror_paused_until_timestamp_seconds',
  );
  await resumeRequests(sql, 'operator');
}

/** Runs a follower whose receiver rejects everything permanently, and one whose history was replaced. */
async function follow(): Promise<void> {
  const receiver = createServer((_, response) => response.writeHead(400).end());
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  const { port } = receiver.address() as AddressInfo;
  const env = { ...stack.env, WEBHOOK_SECRET: `whsec_${'A'.repeat(43)}=`, WEBHOOK_ALLOW_PRIVATE: 'true' };
  const refused = ['--webhook', `http://127.0.0.1:${port}/`, '--attempts', '1'];
  const shop = await runProgram(['follow', '--name', 'shop', '--from', 'oldest', '--once', ...refused], env);
  receiver.close();
  expect(shop.code).toBe(0);
  expect((await runProgram(['follow', '--name', 'lost', '--once'], env)).code).toBe(0);
  await stack.sql`update catalog_internal.followers set position = position + 1000000000000 where name = 'lost'`;
  await seen('catalog_mirror_follower_dead_letters > 0 and on () catalog_mirror_follower_position_lost > 0');
}

describe.skipIf(!hasPrometheus)('a mirror watched by Prometheus', () => {
  beforeAll(async () => {
    stack = await createStack({
      sandbox: { skus: 400, seed: 2311, liveShare: 0.1, liveCeilingPerMinute: 60, noopShare: 0.2 },
      env: {
        LIVE_INTERVAL: '5s',
        SWEEP_INTERVAL: `${SWEEP_SECONDS}s`,
        PARTNER_BACKOFF: '3s',
        PARTNER_RATE_LIMIT: '6000',
      },
    });
    app = await stack.start();
    prometheus = await startPrometheus(`127.0.0.1:${app.httpPort}`);
    await live();
  }, 600_000);
  afterAll(async () => {
    await prometheus?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  });

  function expectSensible(courses: readonly Course[], [least, most]: readonly [number, number]): void {
    const values = courses.flatMap((course) => course.values.map(([, value]) => value));
    expect(values.length).toBeGreaterThan(0);
    const wrong = courses.flatMap(({ metric, values }) =>
      values
        .filter(([, value]) => !(value >= least && value <= most))
        .map(([, value]) => `${JSON.stringify(metric)} ${value}`),
    );
    expect(wrong.slice(0, 5)).toEqual([]);
  }

  test.each(PANEL_EXPRESSIONS)('$where shows plausible values', async ({ where, expr, unit }) => {
    expectSensible(await prometheus.course(filledIn(expr)), RANGES_OF[where] ?? RANGES[unit] ?? [0, -1]);
  });

  test.each(RECORDING_RULES)('$record has plausible values', async ({ record = '' }) => {
    expectSensible(await prometheus.course(record), RANGES_OF[record] ?? BURN);
  });

  test.each(MARK_EXPRESSIONS)('$where is readable', async ({ expr }) => {
    for (const { values } of await prometheus.course(filledIn(expr)))
      for (const [, value] of values) expect(value).toBeGreaterThan(0);
  });

  test.each(ALERT_RULES)('the condition of $alert is readable', async ({ expr }) => {
    await prometheus.now(expr);
  });

  test.each([...PANEL_EXPRESSIONS, ...MARK_EXPRESSIONS, ...RULE_EXPRESSIONS])(
    'the series that $where selects exist',
    async ({ expr }: Expression) => {
      for (const { metric, matchers } of selectorsOf(expr)) {
        // Prometheus creates these for firing alerts.
        if (metric === 'ALERTS') continue;
        // An excluded value has to exist, too.
        for (const matcher of matchers.map((m) => m.replace('!=', '=').replace('!~', '=~'))) {
          expect(await prometheus.series(`${metric}{${matcher}}`), `${metric}{${matcher}}`).not.toEqual([]);
        }
        expect(await prometheus.series(metric), `series of ${metric}`).not.toEqual([]);
      }
    },
  );

  test('shows the counts of SQL on a panel', async () => {
    const shown = PANEL_EXPRESSIONS.find(({ where }) => where === 'panel "Priced SKUs by cohort" A');
    await eventually(
      async () => {
        const rows = await stack.sql<{ source: string; count: number }[]>`
        select price_source as source, count(*)::int as count from catalog.skus
        where state = 'priced' group by 1`;
        const courses = await prometheus.now(filledIn(shown?.expr ?? ''));
        const counts = new Map(courses.map(({ metric, values }) => [metric['price_source'], values[0]?.[1]]));
        return rows.length > 1 && rows.every(({ source, count }) => counts.get(source) === count);
      },
      { what: 'the counts of SQL' },
    );
  });
});
