import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/config/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER, type Tracer } from '../../src/lib/tracer.ts';
import { createPartnerClient } from '../../src/partner/client.ts';
import { createObservers } from '../../src/store/answer/observers.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { refreshAll } from '../../src/store/sellers/refresh.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { syncManifest } from '../../src/sync/manifest.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { createLogger, withTraceIds } from '../../src/telemetry/log/logger.ts';
import { startSdk } from '../../src/telemetry/traces/sdk.ts';
import { UNPACED } from '../../test/support/unpaced.ts';
import { median } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import type { Others } from './others.ts';

/*
 * npm run bench:traces [-- --skus 20000 --rounds 60 --json FILE] What traces add to a bulk call of a hundred SKUs:
 * planned, claimed, asked of a sandbox that answers at once, applied and learned from, by the daemon's own function.
 * In turns ten calls without and ten with traces, all of which are recorded, encoded and sent to a collector in
 * another process before the time is taken. At the partner, whose answers take seconds, the part is smaller still.
 */

const { skus, rounds, json } = sizes({ skus: 20_000, rounds: 60 });
const CALLS = 10;
const TIMEOUT_MS = 30_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const nowhere = { write: () => {} };

function contextOf(sql: Sql, url: string, { url: partner, apiKey, secret, collector }: Others) {
  const config = loadConfig(
    {
      PARTNER_BASE_URL: partner,
      PARTNER_API_KEY: apiKey,
      PARTNER_SECRET: secret,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector,
    },
    () => '',
  );
  const client = createPartnerClient({
    baseUrl: new URL(partner),
    credentials: () => ({ apiKey, secret }),
    timeoutMs: TIMEOUT_MS,
    bodyKey: 'skus',
    priceFields: config.partner.fields.price,
    skuField: 'sku',
    allowInsecure: false,
    userAgent: 'bench',
    clock: systemClock,
  });
  const ctx: Omit<SyncContext, 'tracer'> = {
    sql,
    databaseUrl: () => url,
    client,
    pacer: UNPACED,
    clock: systemClock,
    random: () => 0.5,
    settings: { ...config, callsPerMinute: 120 },
    emit: () => undefined,
    observers: createObservers(systemClock),
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
  };
  return { ctx, config, client };
}

/** So many calls, one after the other; those that have none to make yet are made again. */
async function call(ctx: SyncContext, calls: number): Promise<void> {
  for (let made = 0; made < calls;) {
    const done = await repriceOnce(ctx, { sinceLastCallMs: 60_000 }, TIMEOUT_MS, signals);
    if (done.kind === 'called' && done.skus > 0) made += 1;
    else if (done.kind !== 'called') throw new Error(`no call: ${JSON.stringify(done)}`);
  }
}

interface Cost {
  readonly ms: number;
  readonly cpuMs: number;
}

async function cost(work: () => Promise<void>): Promise<Cost> {
  const cpu = process.cpuUsage();
  const from = performance.now();
  await work();
  const ms = performance.now() - from;
  const { user, system } = process.cpuUsage(cpu);
  return { ms: ms / CALLS, cpuMs: (user + system) / 1000 / CALLS };
}

async function measure({ ctx, config }: ReturnType<typeof contextOf>): Promise<Record<'on' | 'off', Cost[]>> {
  const costs = { on: [] as Cost[], off: [] as Cost[] };
  const log = createLogger({ level: 'info', secrets: () => [], destination: nowhere });
  const traced = async (tracer: Tracer, close: () => Promise<void>) =>
    await cost(async () => {
      await call({ ...ctx, tracer }, CALLS);
      await close();
    });
  const turns = {
    off: async () => await traced(NO_TRACER, async () => {}),
    on: async () => {
      const url = config.traces.url ?? '';
      const sdk = await startSdk({ config, url, log, clock: systemClock });
      withTraceIds(log, sdk.present);
      return await traced(sdk.tracer, sdk.close);
    },
  };
  for (let round = -2; round < rounds; round += 1) {
    await refreshAll(ctx.sql, 'prices');
    ctx.floors.reset();
    // Who goes first takes turns, too.
    for (const turn of round % 2 === 0 ? (['off', 'on'] as const) : (['on', 'off'] as const)) {
      const spent = await turns[turn]();
      if (round >= 0) costs[turn].push(spent);
    }
  }
  return costs;
}

/** The median of each, and of the ratios of neighbours. */
function rowOf(
  what: string,
  unit: string,
  on: readonly number[],
  off: readonly number[],
  limit?: number,
): Row {
  const ratios = on.map((value, i) => value / (off[i] ?? value));
  const theirs = median(off);
  return {
    work: `${what} with traces`,
    ours: theirs * median(ratios),
    unit,
    against: { what: 'without', value: theirs },
    ...(limit === undefined ? {} : { reach: { is: '≤', limit } }),
  };
}

const rows = await withMirrorDatabase(
  async ({ sql, url }) => {
    const child = fork(fileURLToPath(new URL('others.ts', import.meta.url)), [String(skus)]);
    const [others] = (await once(child, 'message')) as [Others];
    const made = contextOf(sql, url, others);
    try {
      const baseline = await syncManifest(
        { ...made.ctx, tracer: NO_TRACER },
        { run: '1', failures: 0, refusals: 0 },
      );
      if (baseline.kind !== 'done') throw new Error(`no baseline: ${JSON.stringify(baseline)}`);
      const { on, off } = await measure(made);
      const of = (costs: readonly Cost[], what: keyof Cost) => costs.map((one) => one[what]);
      return [
        rowOf('a bulk call of 100 SKUs', 'ms', of(on, 'ms'), of(off, 'ms'), 1.03),
        rowOf("the daemon's processor time for it", 'ms', of(on, 'cpuMs'), of(off, 'cpuMs')),
      ];
    } finally {
      await made.client.close();
      child.disconnect();
    }
  },
  { max: 4, settings: { autovacuum: 'off', checkpoint_timeout: '1h', max_wal_size: '8GB' } },
);
report(rows, json);
