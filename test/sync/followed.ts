import { beforeEach } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import type { DeltaAnswer, ManifestMeta } from '../../src/partner/answers.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';
import { runTask } from '../../src/queues/task-run.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { checkCatalog } from '../../src/sync/catalog-check.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { syncDelta } from '../../src/sync/delta.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { knownSkus, settleKnown, type TestStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';
import { UNPACED } from '../support/unpaced.ts';

const MINUTE = 60_000;
const START = Date.now() - 24 * 60 * MINUTE;
/** Build times by the partner's clock, in hours. */
export const built = (hour: number) => new Date(START + hour * 60 * MINUTE);

export const SKUS = Array.from({ length: 20 }, (_, n) => `A${String(n).padStart(2, '0')}`);

/** A partner that says what it is told to say. */
export interface SaidPartner {
  /** What the manifest route answers. */
  named: Partial<ManifestMeta>;
  /** What the delta route answers to a token. Missing members mean nothing new. */
  answers: (since: string) => Partial<DeltaAnswer>;
  polls: number;
  events: SyncEvent[];
  /** How far the clock of the daemon's host is ahead. */
  hostAheadMs: number;
}

/** Sets up in each test a mirror of twenty SKUs at s6, confirmed by both its delta and its manifest route. */
export function useFollowed(store: TestStore) {
  const partner: SaidPartner = { named: {}, answers: () => ({}), polls: 0, events: [], hostAheadMs: 0 };
  let ctx: SyncContext;

  beforeEach(async () => {
    const { sql } = store;
    const named = { snapshotId: 's6', generatedAt: built(6), skuCount: 20, livePricedSkuCount: 0 };
    Object.assign(partner, { named, answers: () => ({}), hostAheadMs: 0 });
    ctx = contextOf(store, partner);
    await sql`
      update catalog_internal.sync set snapshot_id = 's6', token_at = now(), manifest_applied_at = now(), delta_checked_at = now(),
        snapshot_generated_at = ${built(6)}`;
    await knownSkus(sql, SKUS, { hash: 'h1' });
    await sql`
      update catalog.skus set state = 'priced', priced_at = now() - interval '1 hour', asked_at = now() - interval '1 hour'`;
    await settleKnown(sql);
    await run('delta');
    await run('catalog-check');
    await rest();
    Object.assign(partner, { polls: 0, events: [] });
  });

  /** Puts all tasks off. */
  async function rest(): Promise<void> {
    await store.sql`update catalog_internal.tasks set next_at = now() + interval '7 days'`;
  }

  /** Runs the task as due. Returns in how many minutes it is due again. */
  async function run(task: 'delta' | 'catalog-check'): Promise<number> {
    const { sql } = store;
    await sql`update catalog_internal.tasks set next_at = now() where task = ${task}`;
    const runner = { sql, clock: systemClock, signal: new AbortController().signal, report: () => {} };
    await runTask(runner, task, async (of) =>
      task === 'delta' ? await syncDelta(ctx, of) : await checkCatalog(ctx, of),
    );
    const [row] = await sql<[{ minutes: number }]>`
      select round(extract(epoch from next_at - clock_timestamp()) / 60)::int as minutes
      from catalog_internal.tasks where task = ${task}`;
    return row.minutes;
  }

  /** Lets `minutes` pass while the delta is read. */
  async function minutesLater(minutes: number): Promise<void> {
    await store.sql`
      update catalog_internal.sync set behind_since = behind_since - make_interval(mins => ${minutes}),
        token_at = token_at - make_interval(mins => ${minutes}),
        manifest_applied_at = manifest_applied_at - make_interval(mins => ${minutes})`;
    await run('delta');
  }

  const found = async () => await foundIn(store.sql, partner);

  return { partner, run, rest, minutesLater, found };
}

function contextOf({ sql, url: databaseUrl }: TestStore, partner: SaidPartner): SyncContext {
  return {
    sql,
    databaseUrl: () => databaseUrl,
    client: {
      async delta(_: unknown, since: string) {
        partner.polls += 1;
        const nothing = { changed: [], removed: [], nowLive: [], toSnapshot: since, skipped: 0 };
        return { ...nothing, ...partner.answers(since) };
      },
      async manifest() {
        const url = new SecretUrl(new URL('https://files.example/m.gz'));
        return { url, urlExpiresAt: null, readBy: { url: null, snapshotId: null }, ...partner.named };
      },
    },
    pacer: UNPACED,
    clock: { ...systemClock, now: () => systemClock.now() + partner.hostAheadMs },
    random: Math.random,
    emit: (event: SyncEvent) => partner.events.push(event),
    settings: settingsWith(),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
}

/** Returns what the mirror thinks of the delta, and what follows from it. */
async function foundIn(sql: Sql, { events }: SaidPartner) {
  const { deltaBehindSince, deltaStillSince, catalogDifference, catalogState, deltaLate } =
    await readSyncState(sql);
  const [row] = await sql<[{ doubt: string | null; price: string | null; asked: boolean; silent: boolean }]>`
    select (select delta_doubt from catalog_internal.sync) as doubt,
      (select doubt from catalog.sku_trust where sku = 'A00') as price,
      (select next_at <= clock_timestamp() from catalog_internal.tasks where task = 'manifest') as asked,
      (select silent_minutes = 'infinity' from catalog_internal.price_beliefs()) as silent`;
  const said = events.flatMap(({ event }) => (event === 'delta.applied' ? [] : [event]));
  return {
    ...row,
    behind: deltaBehindSince !== null,
    still: deltaStillSince !== null,
    catalogDifference,
    catalogState,
    deltaLate,
    said,
  };
}

/** Decides whether the task is due. */
export async function isDue(sql: Sql, task: 'delta' | 'manifest' | 'catalog-check'): Promise<boolean> {
  const [row] = await sql<[{ due: boolean }]>`
    select next_at <= clock_timestamp() as due from catalog_internal.tasks where task = ${task}`;
  return row.due;
}
