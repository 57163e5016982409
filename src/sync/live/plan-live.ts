import { readSyncState } from '../../store/catalog/sync-state.ts';
import type { Sql } from '../../store/connection/db.ts';
import {
  rateGroups,
  readLivePlan,
  type RefreshGap,
  type RefreshThreshold,
  storeRefreshThreshold,
} from '../../store/live/live.ts';
import {
  clearBacklog,
  listBacklog,
  putOffLive,
  readBacklog,
  type Scheduled,
  scheduleLive,
  type Unscheduled,
  unscheduleSnapshot,
  unscheduledLive,
} from '../../store/live/order.ts';
import { readWholesale, storeWholesaleRate } from '../../store/live/product-lines.ts';
import type { Rate } from '../../store/live/rate-prior.ts';
import { areBeliefsYoung, drawRandomRefreshes, learnBeliefs } from '../../store/trust/beliefs.ts';
import type { SyncContext } from '../context.ts';
import type { TaskOutcome } from '../outcome.ts';
import { nextRefresh, type SyncSettings } from '../settings.ts';
import { liveCeilingAt, measuredCeiling, withoutIdleTime } from './ceiling.ts';
import { idleAfter, isBacklog, isBacklogNear, listedSkus, overdueMinutes } from './choose.ts';
import { waitMinutes } from './learn-refresh.ts';
import {
  drawnPart,
  earlyMinutes,
  MAX_ROUNDS,
  MIN_MINUTES,
  PRIOR,
  type RateGroup,
  roundOf,
  solveThreshold,
  rateOf,
} from './policy.ts';
import { setAside } from './product-lines.ts';
import { wholesaleRate } from './releases.ts';

const SOLVE_EVERY_MS = 600_000;
/** The next run while there is nothing to solve, while there is a backlog, and while little is known of the market. */
const SOON_MS = 60_000;

/**
 * Solves what a live refresh must gain to be worth it (policy.ts). If the available refreshes suffice for every
 * SKU's LIVE_INTERVAL, or by configuration, there is no threshold: SKUs are refreshed in rotation. When an
 * incident begins, all SKUs join the live ones; when it ends, snapshot-priced SKUs leave them
 * (store/live/order.ts).
 */
export async function planLive(ctx: SyncContext): Promise<TaskOutcome> {
  const { sql, settings } = ctx;
  const [plan, state] = await Promise.all([readLivePlan(sql), readSyncState(sql)]);
  const incident = plan.incident !== null;
  if (!incident && plan.unsolved) await unscheduleSnapshots(ctx);
  const groups = await rateGroups(sql, PRIOR, incident);
  const skus = groups.reduce((n, { count }) => n + count, 0);
  const budget = Math.floor(state.liveBudget ?? settings.bulk.liveBudget);
  const refreshes = Math.min(
    settings.callsPerMinute * budget,
    liveCeilingAt(withoutIdleTime(plan.ceiling, plan, settings.callsPerMinute), plan.now),
  );
  const aside = setAside(plan.releases, plan.now / 60_000);
  const solved = solve(groups, refreshes, settings, { incident, aside });
  const { idle, ...backlog } = await catchUp(sql, solved, refreshes);
  const wait = (weight: number, rate: Rate) => waitMinutes(solved, settings, weight, rate);
  const scheduled =
    incident || plan.unsolved ? await scheduleAll(ctx, wait, { all: plan.unsolved, incident }) : 0;
  // Also by what was measured, because what is tried beyond that may not last.
  const measured = Math.min(settings.callsPerMinute * budget, measuredCeiling(plan.ceiling));
  const longest = (perMinute: number) =>
    longestMinutes(groups, perMinute, settings, incident) ?? settings.intervals.liveMs / 60_000;
  await bringForward(ctx, wait, Math.max(longest(measured), longest(refreshes)));
  await storeRefreshThreshold(sql, solved, idle, plan.incident?.since ?? null);
  const late = await learnBeliefs(sql);
  if (late?.kind === 'began') ctx.emit({ event: 'late-prices.began', looks: late.looks, found: late.found });
  if (late?.kind === 'ended') ctx.emit({ event: 'late-prices.ended', minutes: late.minutes });
  await storeWholesaleRate(sql, wholesaleRate(await readWholesale(sql)));
  const isSoon = skus === 0 || backlog.isNear || (await areBeliefsYoung(sql));
  const nextInMs = isSoon ? SOON_MS : SOLVE_EVERY_MS;
  // In rotation, each refresh is as good a sample.
  if (solved.refreshThreshold !== null)
    await drawRandomRefreshes(sql, {
      part: drawnPart(skus, refreshes, nextInMs / 60_000),
      minutes: nextInMs / 60_000,
      seed: Math.floor(ctx.random() * 2 ** 31),
    });
  return {
    kind: 'done',
    nextInMs,
    counts: {
      liveSkus: skus,
      refreshesPerMinute: Math.round(refreshes),
      roundMinutes: Math.ceil(roundOf(groups, refreshes)),
      scarce: Number(solved.refreshThreshold !== null),
      backlog: backlog.due,
      ...(incident ? { incident: plan.incident.because, scheduled } : {}),
    },
  };
}

/**
 * Lists the most valuable due SKUs if they are a backlog (choose.ts). `due`: SKUs in the backlog; 0: there is
 * none.
 */
async function catchUp(
  sql: Sql,
  { refreshThreshold, maxIntervalMinutes }: RefreshThreshold,
  refreshesPerMinute: number,
): Promise<{ readonly idle: RefreshGap; readonly due: number; readonly isNear: boolean }> {
  const found = await readBacklog(sql);
  const { refreshedAt } = found;
  if (refreshThreshold === null || maxIntervalMinutes === null) {
    await clearBacklog(sql);
    return { idle: { minutes: 0, overdueMinutes: null, refreshedAt }, due: 0, isNear: false };
  }
  const now = { due: found.due, refreshesPerMinute };
  const backlog = isBacklog(now);
  // While nothing was due, no SKU waited.
  const waited = (gap: number) => Math.min(gap, found.waiting);
  const { elapsed } = found;
  const minutes = idleAfter(found.idle, { gaps: found.gaps.map(waited), elapsed, backlog });
  const present = idleAfter(minutes, { gaps: [waited(found.sinceLast)], elapsed: 0, backlog });
  const overdue = overdueMinutes(maxIntervalMinutes, present);
  if (backlog) await listBacklog(sql, { count: listedSkus(now), overdueMinutes: overdue, prior: PRIOR });
  else await clearBacklog(sql);
  return {
    idle: { minutes, overdueMinutes: overdue, refreshedAt },
    due: backlog ? found.due : 0,
    isNear: isBacklogNear(now),
  };
}

/** Solves the threshold; all null: SKUs are refreshed in rotation. */
function solve(
  groups: readonly RateGroup[],
  refreshes: number,
  settings: SyncSettings,
  { incident, aside }: { readonly incident: boolean; readonly aside: number },
): RefreshThreshold {
  const maxIntervalMinutes = longestMinutes(groups, refreshes, settings, incident);
  if (maxIntervalMinutes === null)
    return { refreshThreshold: null, maxIntervalMinutes: null, earlyMinutes: null };
  return {
    refreshThreshold: solveThreshold(groups, refreshes, maxIntervalMinutes, aside),
    maxIntervalMinutes,
    earlyMinutes: earlyMinutes(roundOf(groups, refreshes)),
  };
}

/**
 * Returns the longest wait of any SKU: three rounds or, in an incident, METADATA_INTERVAL if that is longer; null:
 * SKUs are refreshed in rotation.
 */
function longestMinutes(
  groups: readonly RateGroup[],
  refreshes: number,
  settings: SyncSettings,
  incident: boolean,
): number | null {
  const { livePolicy, liveMs, metadataMs } = settings.intervals;
  const round = roundOf(groups, refreshes);
  if (livePolicy !== 'index' || round * 60_000 <= liveMs) return null;
  const cap = MAX_ROUNDS * round;
  return incident ? Math.max(cap, metadataMs / 60_000) : cap;
}

const AT_ONCE = 10_000;

/**
 * Puts SKUs in the order of live refreshes, each as long after its last refresh as `waitMinutes` says. `all`: also
 * those that are already scheduled, after a change of the plan. Returns how many.
 */
export async function scheduleAll(
  ctx: SyncContext,
  waitMinutes: WaitMinutes,
  { all, incident }: { readonly all: boolean; readonly incident: boolean },
): Promise<number> {
  let scheduled = 0;
  let after = '';
  for (;;) {
    const piece = await unscheduledLive(ctx.sql, { after, limit: AT_ONCE, scheduled: all, incident });
    const last = piece.at(-1);
    if (last === undefined) return scheduled;
    after = last.sku;
    scheduled += piece.length;
    await scheduleLive(ctx.sql, scheduledBy(waitMinutes, piece));
  }
}

type WaitMinutes = (weight: number, rate: Rate) => number;

const scheduledBy = (waitMinutes: WaitMinutes, piece: readonly Unscheduled[]): Scheduled[] =>
  piece.map(({ sku, version, ...look }) => {
    const rate = rateOf(look);
    const wait = look.minutes === null ? 0 : waitMinutes(look.weight, rate) - Math.max(0, look.minutes);
    return { sku, version, ...rate, inMs: wait * 60_000 };
  });

/** A wait longer than today's longest by this factor is from another time; plans always differ by less. */
const PUT_OFF = 1.5;
const YEAR_MINUTES = 365 * 24 * 60;

/**
 * Reschedules SKUs that were put off for longer than any SKU waits now. When few live prices are computed, each
 * waits for days, and otherwise would still do so once enough are.
 */
async function bringForward({ sql }: SyncContext, waitMinutes: WaitMinutes, longest: number): Promise<void> {
  const minutes = PUT_OFF * Math.max(MIN_MINUTES, longest);
  if (minutes > YEAR_MINUTES) return;
  let moved = 0;
  do {
    const piece = await putOffLive(sql, { minutes, limit: AT_ONCE });
    moved = piece.length === 0 ? 0 : await scheduleLive(sql, scheduledBy(waitMinutes, piece));
    // A SKU that somebody else has changed meanwhile is left to the next plan.
  } while (moved === AT_ONCE);
}

/**
 * Returns, after an incident, all SKUs that are not listed as live to the sweep, or to the rotation of unlisted
 * ones.
 */
export async function unscheduleSnapshots(ctx: SyncContext): Promise<void> {
  const next = nextRefresh(ctx.settings);
  let after: string | null = '';
  while (after !== null) {
    after = await unscheduleSnapshot(ctx.sql, { after, limit: AT_ONCE, next });
  }
}
