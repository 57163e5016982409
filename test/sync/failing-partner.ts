import type { CallInputs } from '../../src/store/call/bulk-call.ts';
import type { CallSize } from '../../src/store/call/call-lesson.ts';
import type { ClaimedSku, Lane } from '../../src/store/ledger/due.ts';
import { FAILURES_BEFORE_PAUSE } from '../../src/store/ledger/tasks.ts';
import { afterFailedCall, ANY_SIZE, sizeAfter } from '../../src/sync/reprice/call-size.ts';
import {
  afterEnded,
  doubtStep,
  isLiveAway,
  type LiveDoubt,
  mayFailForSource,
  NO_DOUBT,
} from '../../src/sync/reprice/live-doubt.ts';
import {
  afterTurn,
  type CallTurns,
  FIRST_TURNS,
  planCall,
  type PlannedCall,
} from '../../src/sync/reprice/plan-call.ts';
import { blamedFrom, skuResultOf } from '../../src/sync/reprice/reconciliation.ts';
import { type CallEnd, mostUnderWay } from '../../src/sync/reprice/slice.ts';
import { seeded } from '../hostile/random.ts';
import { QUIET_PLAN } from '../support/live-plan.ts';
import { settingsWith } from '../support/settings.ts';
import { type Failing, HOUR, MINUTE, type Outcome } from './failing.ts';

const LIVE_MS = 5 * MINUTE;
const SNAPSHOT_MS = 24 * HOUR;
const NEVER = Infinity;

interface Row {
  readonly sku: string;
  readonly bad: boolean;
  readonly live: boolean;
  lane: Lane;
  dueAt: number;
  heldUntil: number;
  failures: number;
  largestCall: number | null;
  answeredAt: number;
}

/** What a process keeps in memory. */
interface Daemon {
  doubt: LiveDoubt;
  turns: CallTurns;
  last: CallEnd;
  sentAt: number;
}

interface UnderWay {
  readonly by: Daemon;
  readonly endsAt: number;
  readonly sentAt: number;
  readonly rows: readonly Row[];
  readonly planned: PlannedCall;
  readonly fails: boolean;
  /** Whether it was made in an outage, in which all calls fail. */
  readonly isOut: boolean;
}

/**
 * Simulates re-pricing by daemons with such a partner. The plan, the response to failures and the sizes are the
 * production code's; the ledger is a list. Everything is priced at the start.
 */
export function reprice(partner: Failing, hours: number): Outcome {
  const settings = settingsWith({ LIVE_INTERVAL: '5m' });
  const spacingMs = MINUTE / settings.callsPerMinute;
  const rows = Array.from({ length: partner.skus }, (_, n): Row => {
    const live = n < partner.live;
    const every = live ? LIVE_MS : SNAPSHOT_MS;
    // Anywhere in their interval: 0.618… scatters them evenly.
    const dueAt = partner.atOnce ? 0 : every * ((n * 0.618_034) % 1);
    return {
      sku: `S${n}`,
      bad: partner.bad.has(n),
      live,
      lane: live ? 'live' : 'sweep',
      dueAt,
      heldUntil: 0,
      failures: 0,
      largestCall: null,
      answeredAt: dueAt - every,
    };
  });
  const outcome: Outcome = { calls: 0, lost: 0, lostToOutages: 0, late: [], outages: [] };
  let callSize: CallSize = { step: 0, ...ANY_SIZE };
  let pause = { until: 0, failures: 0 };
  let underWay: UnderWay[] = [];
  const daemons = Array.from({ length: partner.daemons }, (): Daemon => {
    return { doubt: NO_DOUBT, turns: FIRST_TURNS, last: 'worked', sentAt: -Infinity };
  });
  let outageSince: number | null = null;
  let creditFrom = 0;
  let computedAt: number | null = null;
  const random = seeded(partner.skus);
  let [now, sentAt] = [0, -Infinity];

  function pauseMs(): number {
    const isTrial = pause.failures >= FAILURES_BEFORE_PAUSE && underWay.length > 0;
    return Math.max(isTrial ? 1000 : 0, pause.until - now);
  }

  function inputs(): CallInputs {
    type Alike = { lane: Lane; largestCall: number; live: boolean; count: number };
    const counts = { live: new Map<Lane | number, Alike>(), others: new Map<Lane | number, Alike>() };
    let next = NEVER;
    for (const { lane, largestCall, live, dueAt, heldUntil } of rows) {
      const at = Math.max(dueAt, heldUntil);
      if (at > now) {
        next = Math.min(next, at);
        continue;
      }
      const [which, key] = [live ? counts.live : counts.others, largestCall ?? lane];
      const alike = which.get(key);
      if (alike === undefined) which.set(key, { lane, largestCall: largestCall ?? 0, live, count: 1 });
      else alike.count += 1;
    }
    const all = [...counts.live.values(), ...counts.others.values()];
    return {
      pause: { ms: pauseMs(), failures: pause.failures, rejections: 0 },
      sync: { liveBudget: null, catalogState: 'ok' },
      livePlan: { ...QUIET_PLAN, outageSince, creditFrom, computedAt, now },
      callSize,
      due: all.filter(({ largestCall }) => largestCall === 0),
      suspects: all
        .filter(({ largestCall }) => largestCall > 0)
        .toSorted((one, other) => other.largestCall - one.largestCall),
      nextDueMs: all.length > 0 ? 0 : next === NEVER ? null : next - now,
      candidates: [],
      untried: null,
      watchlistMoved: false,
      scopeMoved: false,
      hintsCame: false,
      refreshesCame: false,
    };
  }

  function claim({ wanted }: PlannedCall): Row[] {
    if (wanted.lone !== undefined) {
      const found = rows.filter((row) => row.live && row.heldUntil <= now && row.dueAt <= now);
      const drawn = found.slice(random(found.length)).slice(0, 1);
      for (const row of drawn) row.heldUntil = NEVER;
      return drawn;
    }
    const taken: Row[] = [];
    const take = (count: number, which: (row: Row) => boolean) => {
      const found = rows.filter((row) => row.heldUntil <= now && row.dueAt <= now && which(row));
      const first = found
        .toSorted((a, b) => (a.largestCall === null ? 0 : a.failures - b.failures) || a.dueAt - b.dueAt)
        .slice(0, count);
      for (const row of first) row.heldUntil = NEVER;
      taken.push(...first);
    };
    for (const { lane, live, count } of wanted.quotas ?? [])
      take(count, (row) => row.largestCall === null && row.lane === lane && row.live === live);
    for (const { largestCall, live, count } of wanted.suspects ?? [])
      take(count, (row) => row.largestCall === largestCall && row.live === live);
    return taken;
  }

  /** Learns what a call shows about the live source, like RecentAnswers. */
  function judgeLive({ by, rows: asked, planned, sentAt: at, fails }: UnderWay): void {
    const wasOut = planned.plan.outageSince !== null;
    if (!(wasOut && fails))
      by.doubt = afterEnded(by.doubt, { asked, answered: !fails, sentAt: at, endedAt: now });
    if (isLiveAway(by.doubt)) {
      by.doubt = NO_DOUBT;
      if (outageSince === null) outcome.outages.push({ began: now, ended: NEVER });
      outageSince ??= now;
    }
    if (!wasOut || fails || outageSince === null || !asked.some(({ live }) => live)) return;
    outageSince = null;
    for (const row of rows) {
      if (!row.live || row.largestCall === null || row.heldUntil === NEVER) continue;
      row.heldUntil = 0;
      row.failures = 0;
    }
    for (const told of outcome.outages) told.ended = Math.min(told.ended, now);
  }

  function end(call: UnderWay): void {
    const { rows: asked, planned, fails, isOut } = call;
    judgeLive(call);
    outcome.calls += 1;
    const hadFailed = planned.wanted.suspects !== undefined;
    if (!fails) {
      worked(asked, planned);
      return;
    }
    outcome.lost += 1;
    if (planned.lone && planned.plan.outageSince !== null) {
      for (const row of asked) row.heldUntil = now + settings.intervals.errorMs;
      return;
    }
    if (isOut) outcome.lostToOutages += 1;
    const failed = {
      kind: 'service-fault',
      skus: asked.length,
      failures: planned.failures,
      rejections: planned.rejections,
      hadFailed,
    } as const;
    const effects = afterFailedCall(failed, planned.callSize, settings);
    const mayBlame = hadFailed && planned.failures === 0 && pause.failures === 0;
    for (const row of asked) {
      row.heldUntil = effects.holdMs > 0 ? now + effects.holdMs : 0;
      row.largestCall = effects.largestCall ?? row.largestCall;
      if (!effects.blames) continue;
      const claimed: ClaimedSku = {
        ...row,
        generation: 0,
        deferrals: 0,
        dueAt: new Date(row.dueAt),
        reason: 'sweep',
      };
      const isOfSource = mayFailForSource(claimed, failed.kind, planned.plan, settings.intervals);
      const isBlamed = mayBlame && row.failures >= blamedFrom(failed.kind) && !isOfSource;
      const because = isBlamed ? 'alone' : 'alone-in-doubt';
      const result = skuResultOf(
        claimed,
        { kind: 'error', because, failure: 'service-fault' },
        settings,
        () => 0,
      );
      row.heldUntil = now + ('waitMs' in result ? result.waitMs : 0);
      row.failures += 1;
      row.lane = 'error';
    }
    if (effects.callSize?.step === callSize.step + 1) callSize = effects.callSize;
    if (pause.failures === planned.failures)
      pause = { failures: pause.failures + 1, until: Math.max(pause.until, now + effects.pauseMs) };
  }

  function worked(asked: readonly Row[], planned: PlannedCall): void {
    const hadFailed = planned.wanted.suspects !== undefined;
    const call = { skus: asked.length, failed: false, hadFailed };
    const after = sizeAfter(planned.callSize, settings.bulk.maxSkus, call);
    if (after?.step === callSize.step + 1) callSize = after;
    if (planned.failures > 0) pause = { until: 0, failures: 0 };
    const cleared = planned.wanted.suspects?.[0]?.largestCall;
    if (asked.some((row) => row.live)) computedAt = now;
    for (const row of asked) {
      const every = row.live ? LIVE_MS : SNAPSHOT_MS;
      const byMs = now - row.answeredAt - every;
      if (byMs > 0) outcome.late.push({ sku: row.sku, byMs, at: now });
      Object.assign(row, {
        answeredAt: now,
        dueAt: now + every,
        heldUntil: 0,
        failures: 0,
        largestCall: null,
      });
      row.lane = row.live ? 'live' : 'sweep';
    }
    if (cleared === undefined || cleared === 1) return;
    const others = rows.filter((row) => row.largestCall === cleared && row.heldUntil <= now);
    if (others.length <= cleared) for (const row of others) row.largestCall = (cleared + 1) >> 1;
  }

  while (now < hours * HOUR) {
    for (const call of underWay
      .filter(({ endsAt }) => endsAt <= now)
      .toSorted((a, b) => a.endsAt - b.endsAt)) {
      end(call);
      call.by.last = call.fails ? 'failed' : 'worked';
    }
    underWay = underWay.filter(({ endsAt }) => endsAt > now);
    const firstEnd = Math.min(...underWay.map(({ endsAt }) => endsAt));
    const of = (daemon: Daemon) => underWay.filter(({ by }) => by === daemon);
    const free = daemons.filter(
      (each) => of(each).length < Math.min(partner.workers, mostUnderWay(each.last)),
    );
    const by = free.length > 1 ? free[random(free.length)] : free[0];
    if (by === undefined || now < sentAt + spacingMs) {
      now = by === undefined ? firstEnd : Math.min(firstEnd, sentAt + spacingMs);
      continue;
    }
    const planned = planCall(
      inputs(),
      {
        turns: by.turns,
        sinceLastCallMs: now - by.sentAt,
        doubt: doubtStep(by.doubt),
        loneUnderWay: of(by).some((call) => call.planned.lone),
      },
      settings,
    );
    if (planned.kind !== 'planned') {
      const forMs = planned.kind === 'idle' ? (planned.nextInMs ?? HOUR) : planned.forMs;
      // Another process may have a call to make.
      const mostMs = planned.kind === 'linger' ? 500 : partner.daemons > 1 ? 1000 : HOUR;
      now = Math.min(firstEnd, now + Math.max(1, Math.min(forMs, mostMs)));
      continue;
    }
    by.turns = afterTurn(by.turns, planned);
    const asked = claim(planned);
    if (planned.spend !== null && asked.some((row) => row.live)) creditFrom = now;
    const isWithin = (times: Failing['outages']) => times.some(([from, to]) => now >= from && now < to);
    const isOut = isWithin(partner.outages);
    const live = asked.filter((row) => row.live).length;
    const isLiveOut = live > 0 && isWithin(partner.liveOutages);
    const fails =
      isOut ||
      isLiveOut ||
      live > partner.liveLimit ||
      asked.length > partner.limit ||
      asked.some(({ bad }) => bad);
    const tookMs = isLiveOut && !isOut ? partner.hangMs : partner.latencyMs;
    underWay.push({ by, endsAt: now + tookMs, sentAt: now, rows: asked, planned, fails, isOut });
    sentAt = by.sentAt = now;
  }
  const missing = rows.filter(({ bad }) => !bad);
  for (const { sku, live, answeredAt } of missing) {
    const byMs = now - answeredAt - (live ? LIVE_MS : SNAPSHOT_MS);
    if (byMs > 0) outcome.late.push({ sku, byMs, at: now });
  }
  return outcome;
}
