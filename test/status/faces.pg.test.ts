import { createServer, type Server, type Socket } from 'node:net';
import { assert, asyncProperty } from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readStatusOf } from '../../src/cli/status.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createHealth } from '../../src/daemon/health.ts';
import { type HttpServer, startHttpServer } from '../../src/daemon/http-server.ts';
import { createStatusPages } from '../../src/daemon/status-page.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { MIRROR_STATES, type MirrorState, type Reason } from '../../src/status/reason.ts';
import { screen } from '../../src/status/screen.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { countCatalog } from '../../src/store/status/counts-reader.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { empty, useStore } from '../store/support.ts';
import { runProgram } from '../support/process.ts';
import { settingsWith } from '../support/settings.ts';
import { runs } from '../support/soak.ts';
import { anyMirror, anyOwn, type DrawnMirror, type DrawnOwn, putMirror } from './draws.ts';

/*
 * Checks that readyz, the page, status.json, the metrics and the `status` command agree about a mirror in any
 * condition.
 */

const CONFIG = loadConfig({ DATABASE_URL: 'postgres://unused' }, () => '', { need: 'database' });
const PIPE = { width: null, colour: false, ascii: false } as const;
const KNOWS_NOTHING: DrawnOwn = { queues: null, storeFailure: null, refused: null };
const log = createLogger({ level: 'silent', secrets: () => [] });

/** A clock that advances so fast that every page is read afresh. */
function restless(): Clock {
  let passed = 0;
  return { ...systemClock, monotonic: () => (passed += 60_000) };
}

/** Starts the endpoints of a daemon on this database that knows `own()` about itself. */
async function endpoints(sql: Sql, own: () => DrawnOwn): Promise<HttpServer> {
  const health = createHealth(
    {
      config: CONFIG,
      sync: { sql, clock: restless() },
      log,
      backend: {
        ping: () => (own().queues === null ? Promise.resolve() : Promise.reject(new Error('away'))),
        describe: () => own().queues ?? '',
      },
      metrics: createMetrics({ version: '1' }),
      pause: { failure: () => own().storeFailure },
      clocks: { wrong: () => null, notPutRight: () => null },
      breaker: { explain: () => own().refused },
    },
    { lastJobAt: () => null, silentMs: () => 0 },
  );
  const pages = createStatusPages(
    { sync: { sql, clock: restless() }, config: settingsWith(), problems: () => [] },
    health,
  );
  return await startHttpServer({ host: '127.0.0.1', port: 0, ...health, pages, log });
}

const HOLDER = { pid: 4242, usename: 'bi', application_name: 'pg_dump' };

/**
 * Opens a session to which Postgres reports sessions and versions as `told.holder` contains them, because no test
 * can hold a snapshot for an hour. The stand-in precedes pg_catalog in the search path, as nothing of the mirror
 * ever does.
 */
async function toldSession(url: string): Promise<Sql> {
  const sql = connect(url, { max: 1 });
  const session = { ...HOLDER, backend_type: 'client backend', backend_xmin: '3' };
  await sql.unsafe(`
    create schema told;
    create table told.holder (seconds float8 not null, versions bigint not null);
    create view told.pg_stat_activity as
      select * from pg_catalog.pg_stat_activity union all
      select (jsonb_populate_record(null::pg_catalog.pg_stat_activity, '${JSON.stringify(session)}'
        || jsonb_build_object('datname', current_database(), 'xact_start', clock_timestamp() - make_interval(secs => seconds)))).*
      from told.holder;
    create function told.pg_stat_get_dead_tuples(oid) returns bigint language sql as 'select coalesce(max(versions), 0) from told.holder';
    set search_path = told, pg_catalog`);
  return sql;
}

interface Said {
  readonly states: Readonly<Record<string, string | undefined>>;
  readonly codes: Readonly<Record<string, readonly string[]>>;
  readonly reasons: readonly Reason[];
  readonly ready: { readonly status: number; readonly body: Record<string, unknown> };
}

async function saidBy({ port }: HttpServer): Promise<Said> {
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: response.status, text: await response.text() };
  };
  // One after the other: they share one connection, and each has its own time limit.
  const ready = await get('/readyz');
  const page = await get('/');
  const json = await get('/status.json');
  const metrics = await get('/metrics');
  const body = JSON.parse(ready.text) as { state: string; reasons: Reason[] };
  const status = JSON.parse(json.text) as typeof body;
  const ones = (name: string) =>
    [...metrics.text.matchAll(new RegExp(`^catalog_mirror_${name}\\{\\w+="([^"]+)"\\} 1$`, 'gm'))].map(
      ([, value]) => value ?? '',
    );
  return {
    states: {
      ready: body.state,
      json: status.state,
      page: /<b id="state">(\w+)<\/b>/.exec(page.text)?.[1],
      metric: ones('state').join(' '),
    },
    codes: {
      ready: body.reasons.map(({ code }) => code).toSorted(),
      json: status.reasons.map(({ code }) => code).toSorted(),
      metric: ones('state_reason').toSorted(),
    },
    reasons: body.reasons,
    ready: { status: ready.status, body: { ...body } },
  };
}

/** Returns what `status` and `status --json` say; they know nothing about a daemon. */
async function saidByCommand(sql: Sql) {
  const { status, health, now } = await readStatusOf(sql, CONFIG);
  const [first = ''] = screen(status, health, now, PIPE).split('\n');
  return {
    screen: first.split(':', 1)[0],
    json: health.state,
    codes: health.reasons.map(({ code }) => code),
  };
}

const worst = (states: readonly MirrorState[]): MirrorState =>
  MIRROR_STATES[Math.max(0, ...states.map((state) => MIRROR_STATES.indexOf(state)))] ?? 'healthy';

/** The states to which a daemon's own facts lead. */
const levelsOf = ({ queues, storeFailure, refused }: DrawnOwn): MirrorState[] => [
  ...(queues === null ? [] : ['degraded' as const]),
  ...(storeFailure === null ? [] : ['broken' as const]),
  ...(refused === null ? [] : ['degraded' as const]),
];

describe('faces of a mirror in Postgres', () => {
  const store = useStore();
  let own = KNOWS_NOTHING;
  let server: HttpServer;
  let presence: Sql;
  let told: Sql;
  beforeAll(async () => {
    told = await toldSession(store.url);
    server = await endpoints(told, () => own);
    presence = connect(store.url, { max: 1, name: 'catalog-mirror instance' });
  });
  afterAll(async () => {
    await server.close();
    await Promise.all([presence.end(), told.end()]);
  });

  async function put(drawn: DrawnMirror): Promise<void> {
    await empty(store.sql);
    await putMirror(store.sql, drawn);
    // Leaves counts of the same rows that a face shows if counting takes longer than it waits.
    await countCatalog(store.sql);
    await store.sql`
      update catalog_internal.catalog_counts set counted_at = now(), counted_in_ms = ${drawn.counted ? 10_000 : 0}`;
    await told`delete from told.holder`;
    if (drawn.holder !== null)
      await told`insert into told.holder values (${drawn.holder.seconds}, ${drawn.holder.versions})`;
    await presence`delete from catalog_internal.instances`;
    if (drawn.daemon)
      await presence`
        insert into catalog_internal.instances
        select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
  }

  async function agree(drawn: DrawnMirror, ownFacts: DrawnOwn): Promise<Said> {
    await put(drawn);
    own = ownFacts;
    const [said, command] = [await saidBy(server), await saidByCommand(told)];
    const { states, codes, reasons, ready } = said;
    const state = worst([command.json, ...levelsOf(ownFacts)]);
    expect(states).toEqual({ ready: state, json: state, page: state, metric: state });
    expect(command.screen).toBe(command.json);
    expect(codes['json']).toEqual(codes['ready']);
    expect(codes['metric']).toEqual(codes['ready']);
    expect(codes['ready']).toEqual(expect.arrayContaining(command.codes));
    for (const { text } of reasons) expect(text).toMatch(/^\S.*; \S.*\S$/);
    expect(reasons.length === 0).toBe(state === 'healthy');
    const holder = reasons.find(({ code }) => code === 'snapshot-held');
    const costs = drawn.holder !== null && drawn.holder.seconds > 600 && drawn.holder.versions > 1_000_000;
    expect(holder !== undefined).toBe(costs);
    if (costs)
      expect(holder?.text).toMatch(
        /process 4242 .*role bi, application pg_dump.* for 117m.*pg_terminate_backend\(4242\)$/,
      );
    const isReady = ownFacts.queues === null && drawn.baseline !== null;
    expect(ready).toMatchObject({ status: isReady ? 200 : 503, body: { ok: isReady } });
    expect(typeof ready.body['reason']).toBe(isReady ? 'undefined' : 'string');
    return said;
  }

  test('agree on any drawn mirror, and readyz is 503 only without queues or a baseline', async () => {
    await assert(
      asyncProperty(anyMirror, anyOwn, async (drawn, ownFacts) => {
        const { codes } = await agree(drawn, ownFacts);
        // SQL doubts prices for a late delta from the same moment on.
        const [{ doubt, state }] = await store.sql<[{ doubt: string | null; state: string }]>`
          select catalog_doubt as doubt, (select catalog_state from catalog.sync_status) as state from catalog_internal.trust_terms()`;
        const isLate = ['delta-late', 'delta-behind', 'catalog-differs'].some((code) =>
          codes['ready']?.includes(code),
        );
        if (doubt === null || doubt === 'delta_late') expect(isLate).toBe(doubt === 'delta_late');
        // From then on the mirror refreshes by age, as the reason says.
        if (isLate) expect(state).toBe('stale');
      }),
      { numRuns: runs(20, 240) },
    );
  }, 120_000);

  const WELL: DrawnMirror = {
    daemon: true,
    baseline: -90_000,
    delta: -20,
    generated: -300,
    fault: false,
    broken: false,
    refuted: null,
    refused: null,
    deltaInterval: 300,
    tasks: (['manifest', 'delta', 'reprice', 'metadata'] as const).map((task) => ({
      task,
      next: 300,
      runningFor: null,
      failures: 0,
    })),
    pace: null,
    incident: null,
    skus: { pending: 0, priced: 100, not_found: 1, removed: 1 },
    due: [],
    unanswered: 0,
    counted: false,
    holder: null,
  };
  const withPending = (pending: number, unanswered = 0) => ({
    ...WELL,
    skus: { ...WELL.skus, pending },
    unanswered,
  });
  const withDelta = (next: number | 'infinity' | '-infinity') => ({
    ...WELL,
    tasks: WELL.tasks.map((one) => (one.task === 'delta' ? { ...one, next } : one)),
  });

  test.each<[string, DrawnMirror, DrawnOwn, MirrorState]>([
    ['at work', WELL, KNOWS_NOTHING, 'healthy'],
    [
      'without SKUs',
      { ...WELL, skus: { pending: 0, priced: 0, not_found: 0, removed: 0 } },
      KNOWS_NOTHING,
      'degraded',
    ],
    [
      'with each SKU removed',
      { ...WELL, skus: { pending: 0, priced: 0, not_found: 0, removed: 3 } },
      KNOWS_NOTHING,
      'degraded',
    ],
    [
      'beside a dump of hours that costs it',
      { ...WELL, holder: { seconds: 7000, versions: 5_000_000 } },
      KNOWS_NOTHING,
      'degraded',
    ],
    [
      'beside a dump of hours that does not',
      { ...WELL, holder: { seconds: 7000, versions: 9000 } },
      KNOWS_NOTHING,
      'healthy',
    ],
    ['being filled', withPending(2), KNOWS_NOTHING, 'filling'],
    ['being filled, while many fail', withPending(20, 11), KNOWS_NOTHING, 'degraded'],
    ['filled, but for a few that fail', withPending(6, 6), KNOWS_NOTHING, 'healthy'],
    ['whose disk is full', withPending(2), { ...KNOWS_NOTHING, storeFailure: 'disk-full' }, 'broken'],
    ['whose tasks are gone', { ...WELL, tasks: [] }, KNOWS_NOTHING, 'broken'],
    [
      'whose daemon has been gone for a day',
      { ...withDelta(-90_000), daemon: false, delta: -90_000 },
      KNOWS_NOTHING,
      'broken',
    ],
    [
      'whose clock was set back by a year',
      { ...withDelta(400 * 86_400), delta: 400 * 86_400 },
      KNOWS_NOTHING,
      'broken',
    ],
    ['whose delta an operator has put off for ever', withDelta('infinity'), KNOWS_NOTHING, 'broken'],
    ['whose delta is due since for ever', withDelta('-infinity'), KNOWS_NOTHING, 'broken'],
  ])('%s', async (_, drawn, ownFacts, state) => {
    expect((await agree(drawn, ownFacts)).states['ready']).toBe(state);
  });

  test.each(['sync', 'settings', 'live_plan'])(
    'report broken without the single row of %s, and name the table',
    async (table) => {
      await put(WELL);
      own = KNOWS_NOTHING;
      await store.sql.unsafe(`delete from catalog_internal.${table}`);
      const { states, reasons, ready } = await saidBy(server);
      expect(new Set(Object.values(states))).toEqual(new Set(['broken']));
      expect(ready.status).toBe(503);
      expect(reasons.map(({ code, text }) => [code, text.includes(`catalog_internal.${table} `)])).toEqual([
        ['postgres-unavailable', true],
      ]);
      const { code, stdout } = await runProgram(['status'], { DATABASE_URL: store.url });
      expect([code, stdout]).toEqual([2, expect.stringMatching(/^broken: /)]);
    },
  );
});

describe('faces without Postgres', () => {
  /** A server that accepts connections and never sends anything. */
  let mute: Server;
  const sockets: Socket[] = [];
  beforeAll(async () => {
    mute = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => {
      mute.listen(0, '127.0.0.1', resolve);
    });
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    mute.close();
  });
  const portOf = () => (mute.address() as { port: number }).port;

  test.each([
    ['that refuses connections', () => 1],
    ['that never answers', portOf],
  ])('all report broken in time, with a server %s', async (_, port) => {
    const sql = connect(`postgres://nobody@127.0.0.1:${port()}/none`, { max: 2 });
    const server = await endpoints(sql, () => KNOWS_NOTHING);
    try {
      const { states, codes, ready } = await saidBy(server);
      expect(states).toEqual({ ready: 'broken', json: 'broken', page: 'broken', metric: 'broken' });
      expect(new Set(Object.values(codes).flat())).toEqual(new Set(['postgres-unavailable']));
      expect(ready).toMatchObject({ status: 503, body: { ok: false } });
    } finally {
      await server.close();
      await sql.end({ timeout: 0 });
    }
  });
});
