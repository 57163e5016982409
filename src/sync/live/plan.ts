import type { LineEvidence } from '../../store/answer/types.ts';
import type { CandidateOptions } from '../../store/call/bulk-call.ts';
import { readSyncState } from '../../store/catalog/sync-state.ts';
import type { Sql } from '../../store/connection/db.ts';
import { clearBacklog, listBacklog, readBacklog } from '../../store/live/backlog.ts';
import { readWholesale, storeWholesaleRate } from '../../store/live/lines.ts';
import {
  type LiveCandidate,
  type LiveRefresh,
  type LivePlan,
  type LearnedRefresh,
  type RefreshThreshold,
  type RefreshGap,
  pruneLiveCalls,
  rateGroups,
  readLivePlan,
  storeRefreshThreshold,
} from '../../store/live/live.ts';
import { scheduleLive, unscheduleSnapshot, unscheduledLive } from '../../store/live/order.ts';
import { RATES_START_AS, unmovedProbability, withPrior } from '../../store/live/rate-prior.ts';
import { forgetOldHints } from '../../store/sellers/hints.ts';
import { drawLooks, learnBeliefs } from '../../store/trust/beliefs.ts';
import { nextRefresh, type SyncContext, type SyncSettings } from '../context.ts';
import type { TaskOutcome } from '../outcome.ts';
import { isBacklog, listedSkus, isBacklogNear, overdueMinutes, idleAfter } from './backlog.ts';
import { setAside } from './boost.ts';
import { liveCeilingAt, withoutIdleTime } from './ceiling.ts';
import { predictionRecheckMinutes, isHinted, testHints, testPrediction, predictedMove } from './hints.ts';
import { TRIAL_BUDGETS } from './incident.ts';
import { boostPlan, byItself } from './lines.ts';
import { learnMemories, memoriesOf, rateOfMemories } from './memories.ts';
import {
  chooseLive,
  drawnPart,
  earlyMinutes,
  learnMovedSizes,
  MIN_MINUTES,
  MAX_ROUNDS,
  nextRefreshMinutes,
  PRIOR,
  type Rate,
  type RateGroup,
  roundOf,
  SHORTLIST,
  solveThreshold,
} from './policy.ts';
import { rateOf } from './rate.ts';
import { wholesaleRate } from './releases.ts';

const SOLVE_EVERY_MS = 600_000;
/** Until there is something to solve, and while there is a backlog. */
const SOON_MS = 60_000;

/**
 * Solves what a live refresh must gain to be worth it (policy.ts). Where the refreshes there are suffice for every
 * SKU's LIVE_INTERVAL, or by configuration, there is no threshold: SKUs are refreshed in rotation. When an incident
 * begins, everything joins the live SKUs; when it ends, what is snapshot-priced leaves them (store/live/order.ts).
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
    liveCeilingAt(withoutIdleTime(plan.ceiling, plan.computedAt, plan.now), plan.now),
  );
  const aside = setAside(plan.releases, plan.now / 60_000);
  const solved = solve(groups, refreshes, settings, { incident, aside });
  const { idle, ...backlog } = await catchUp(sql, solved, refreshes);
  const wait = (weight: number, rate: Rate) => waitMinutes(solved, settings, weight, rate);
  const scheduled = incident || plan.unsolved ? await scheduleAll(ctx, wait, plan.unsolved, incident) : 0;
  await storeRefreshThreshold(sql, solved, idle, plan.incident?.since ?? null);
  await pruneLiveCalls(sql);
  await learnBeliefs(sql);
  await storeWholesaleRate(sql, wholesaleRate(await readWholesale(sql)));
  await forgetOldHints(sql);
  const nextInMs = skus === 0 || backlog.isNear ? SOON_MS : SOLVE_EVERY_MS;
  // Where all are refreshed in turn, each refresh is as good a sample.
  if (solved.refreshThreshold !== null)
    await drawLooks(sql, {
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
 * Lists the most valuable of what is due, where that is a backlog (backlog.ts). `due`: how many SKUs there are in it,
 * 0: there is none.
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
  // While nothing was due, nobody has waited.
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

/**
 * While an incident lasts nobody can be sure of a refresh in three rounds, which are days: only of one in
 * METADATA_INTERVAL.
 */
function solve(
  groups: readonly RateGroup[],
  refreshes: number,
  settings: SyncSettings,
  { incident, aside }: { readonly incident: boolean; readonly aside: number },
): RefreshThreshold {
  const round = roundOf(groups, refreshes);
  if (settings.intervals.livePolicy !== 'index' || round * 60_000 <= settings.intervals.liveMs)
    return { refreshThreshold: null, maxIntervalMinutes: null, earlyMinutes: null };
  const cap = MAX_ROUNDS * round;
  const maxIntervalMinutes = incident ? Math.max(cap, settings.intervals.metadataMs / 60_000) : cap;
  return {
    refreshThreshold: solveThreshold(groups, refreshes, maxIntervalMinutes, aside),
    maxIntervalMinutes,
    earlyMinutes: earlyMinutes(round),
  };
}

/**
 * What a refresh of a live SKU teaches, and when the next one is due under this plan. `told`: what its line says of it.
 */
export function learnRefresh(
  plan: LivePlan,
  settings: SyncSettings,
): (refresh: LiveRefresh, told?: LineEvidence) => LearnedRefresh {
  return (refresh, told = byItself(refresh)) => {
    const before = rateOf(refresh);
    const seen = { seen: refresh.sizesSeen ?? 0, moved: refresh.sizesMoved ?? 0 };
    const { sku, weight, minutes, moved } = refresh;
    // The first fetch ever has no refresh before it to compare with; what a release explains says nothing of the
    // SKU's own moves.
    const hinted = hintedBy(refresh, before);
    const isOwn = minutes !== null && !told.explained;
    const held = refresh.memories ?? memoriesOf(before);
    const prior = priorOf(refresh);
    const memories = isOwn ? learnMemories(held, minutes, { moved, hinted: hinted.explains }, prior) : held;
    const rate = isOwn ? rateOfMemories(memories, prior) : before;
    const found = refresh.sizes ?? { held: 0, moved: 0 };
    const sizes = isOwn ? learnMovedSizes(seen, before, minutes, found) : seen;
    const dueIn = Math.min(waitMinutes(plan, settings, weight, rate), told.againIn ?? Infinity);
    const boost = boostPlan(plan);
    const again =
      hinted.told === null || boost === null
        ? null
        : predictionRecheckMinutes({ weight, rate, dueIn }, refresh.hints ?? [], boost);
    const learned = {
      ...rate,
      memories,
      sizesSeen: sizes.seen,
      sizesMoved: sizes.moved,
      wholesale: told.wholesale,
    };
    const shown = { hintTests: hinted.tests, told: hinted.told, predictionTests: hinted.predictionTests };
    return { sku, ...learned, ...shown, nextMs: (again ?? dueIn) * 60_000 };
  };
}

const priorOf = ({ priorMinutes = RATES_START_AS.beta }: LiveRefresh) => ({ minutes: priorMinutes });

/**
 * What hints at a SKU say of its refresh, and the refresh of them and of those before; what is undone that they had
 * told of is theirs, too.
 */
function hintedBy(refresh: LiveRefresh, rate: Rate) {
  const { minutes, moved } = refresh;
  if (minutes === null) return { explains: false, tests: [], told: null, predictionTests: [] };
  const hints = refresh.hints ?? [];
  const prices = [...(refresh.prices ?? [])];
  const unmoved = unmovedProbability(withPrior(rate, priorOf(refresh)), Math.max(0, minutes));
  const predictionTests = refresh.told
    ? testPrediction(refresh.told, new Map(prices.map(([size, { to }]) => [size, to])))
    : [];
  return {
    explains: isHinted(hints, unmoved) || predictionTests.some(({ found }) => found === 'undone'),
    tests: testHints(hints, unmoved, moved),
    told: moved
      ? predictedMove(hints, unmoved, Object.fromEntries(prices.map(([size, { from }]) => [size, from])))
      : null,
    predictionTests,
  };
}

function waitMinutes(plan: RefreshThreshold, settings: SyncSettings, weight: number, rate: Rate): number {
  if (plan.refreshThreshold === null || plan.maxIntervalMinutes === null)
    return settings.intervals.liveMs / 60_000;
  return nextRefreshMinutes(weight, rate, plan.refreshThreshold, plan.maxIntervalMinutes);
}

/** By how many seconds live refreshes may come early: where refreshes are scarce, no live slot stays empty. */
export function earlyLiveSeconds({ earlyMinutes: minutes }: LivePlan): number {
  return (minutes ?? 0) * 60;
}

const CANDIDATES_EACH = 3;

/** From how many live SKUs those of any call are chosen: a trial call asks for some live budgets of them. */
export function candidateOptions(settings: SyncSettings): CandidateOptions {
  return {
    perBudget: CANDIDATES_EACH * TRIAL_BUDGETS,
    configuredBudget: settings.bulk.liveBudget,
    least: SHORTLIST,
    most: Math.max(SHORTLIST, CANDIDATES_EACH * settings.bulk.maxSkus),
    restMinutes: MIN_MINUTES,
  };
}

/**
 * Which SKUs of the live lane to claim for a quota of `count`, by value among the first of the `candidates`, which come
 * in order of their due times. Null where there is no refresh threshold: then the quota is claimed in that order.
 */
export function chooseForQuota(
  plan: LivePlan,
  candidates: readonly LiveCandidate[],
  count: number,
): string[] | null {
  if (plan.refreshThreshold === null || plan.maxIntervalMinutes === null) return null;
  // Who was drawn at random may be due as well.
  const each = candidates.filter((one, at) => candidates.findIndex((other) => other.sku === one.sku) === at);
  const choice = each.slice(0, Math.max(SHORTLIST, CANDIDATES_EACH * count)).map((candidate) => ({
    sku: candidate.sku,
    weight: candidate.weight,
    rate: rateOf(candidate),
    tau: candidate.minutes ?? Infinity,
    hazard: candidate.hazard ?? 0,
    random: candidate.random ?? false,
  }));
  return chooseLive(choice, count, plan.overdueMinutes ?? plan.maxIntervalMinutes).map(({ sku }) => sku);
}

const AT_ONCE = 10_000;

/**
 * Schedules SKUs in the order of live refreshes, each as long after its last look as `waitMinutes` says: with `all`
 * those that are scheduled too, as after a change of the plan. Returns how many.
 */
export async function scheduleAll(
  ctx: SyncContext,
  waitMinutes: (weight: number, rate: Rate) => number,
  all: boolean,
  incident: boolean,
): Promise<number> {
  let scheduled = 0;
  let after = '';
  for (;;) {
    const piece = await unscheduledLive(ctx.sql, { after, limit: AT_ONCE, scheduled: all, incident });
    const last = piece.at(-1);
    if (last === undefined) return scheduled;
    after = last.sku;
    scheduled += piece.length;
    await scheduleLive(
      ctx.sql,
      piece.map((sku) => {
        const rate = rateOf(sku);
        const wait = sku.minutes === null ? 0 : waitMinutes(sku.weight, rate) - sku.minutes;
        return { sku: sku.sku, generation: sku.generation, ...rate, inMs: wait * 60_000 };
      }),
    );
  }
}

/** After an incident: returns all SKUs that are not listed as live to the sweep, or to the turns of unlisted ones. */
export async function unscheduleSnapshots(ctx: SyncContext): Promise<void> {
  const next = nextRefresh(ctx.settings);
  let after: string | null = '';
  while (after !== null) {
    after = await unscheduleSnapshot(ctx.sql, { after, limit: AT_ONCE, next });
  }
}
