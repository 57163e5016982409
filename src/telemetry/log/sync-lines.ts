import { declared, type EventName } from '../../declared/log-events.ts';
import type { Clock } from '../../lib/clock.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../lib/duration.ts';
import type { SyncEvent } from '../../sync/events.ts';
import { emitLine, type Log, throttled } from './logger.ts';
import { createInterval, createSums, type LogThrottle } from './throttle.ts';

/** Turns sync events into log lines, each as often as its event declares. */
export function createSyncLines(
  log: Log,
  throttle: LogThrottle,
  clock: Clock,
  bulk: BulkLines,
): (event: SyncEvent) => void {
  const limits = new Map<EventName, () => boolean>();

  /** Returns whether it is time to log an event at its own level. */
  function isTime(event: EventName): boolean {
    const { onceInMs } = declared(event);
    if (onceInMs === 0) return true;
    const limit = limits.get(event) ?? createInterval(clock, onceInMs);
    limits.set(event, limit);
    return limit();
  }

  return (event) => {
    switch (event.event) {
      case 'bulk.applied':
        return bulk.applied(event);
      case 'bulk.failed':
        return bulk.failed(event);
      case 'size-type.changed':
        return bulk.sizeTypes(event.skus);
      case 'manifest.downloaded': {
        const { event: name, outcome, status, ms } = event;
        return log.debug({ event: name, outcome, durationMs: Math.round(ms), httpStatus: status });
      }
      case 'delta.chain-broken': {
        const { hint: _, ...facts } = event;
        const { say, ...repeated } = throttle.again('chain', event.because);
        return throttled(log, 'warn', say, { ...facts, ...repeated });
      }
      case 'delta.applied':
        throttle.over('chain');
        return emitLine(log, event);
      default:
        return emitLine(log, event, isTime(event.event));
    }
  };
}

type Bulk = Extract<SyncEvent, { event: 'bulk.applied' }>;
type Failed = Extract<SyncEvent, { event: 'bulk.failed' }>;

export interface BacklogCounts {
  readonly skus: number;
  readonly unfetched: number;
}

const FIRST_PROGRESS_MS = 10 * SECOND_MS;
const SUM_EVERY_MS = 10 * MINUTE_MS;
const SAMPLE = 20;
/** After a fill, fewer SKUs that were never fetched are just what the delta reports as new, day by day. */
const ANOTHER_FILL = 1000;

export interface BulkLines {
  applied(event: Bulk): void;
  failed(event: Failed): void;
  sizeTypes(skus: readonly string[]): void;
  /** Logs the sums that are due. Call it every few seconds. */
  tick(): void;
}

/** Creates log lines about bulk calls, up to three a second. `backlog` reads what is left to do; it may fail. */
export function createBulkLines(
  log: Log,
  throttle: LogThrottle,
  clock: Clock,
  backlog: () => Promise<BacklogCounts>,
): BulkLines {
  const progress = createProgress(log, clock, backlog);
  const unaccounted = createSums<Record<string, number>>(clock, SUM_EVERY_MS);
  const sizeTypes = createSums<{ count: number }>(clock, SUM_EVERY_MS);
  const setAside = createSetAside(log, clock);
  let sample: string[] = [];
  const unpriced = createSums<{ entries: number }>(clock, HOUR_MS);

  function sayUnaccounted(sums: Record<string, number> | null): void {
    if (sums !== null) log.warn({ event: 'bulk.unaccounted', ...sums });
  }

  function sayUnpriced(sums: { readonly entries: number } | null): void {
    if (sums !== null) log.warn({ event: 'bulk.unpriced-entries', entries: sums.entries });
  }

  function saySizeTypes(sums: { readonly count: number } | null): void {
    if (sums === null) return;
    log.warn({ event: 'size-type.changed', count: sums.count, skus: sample });
    sample = [];
  }

  return {
    applied(event) {
      const { event: _, reportSeconds: __, promises: ___, ...counts } = event;
      const ended = throttle.over('bulk');
      if (ended?.say === true)
        log.info({ event: 'bulk.recovered', times: ended.times, lastedSeconds: ended.lastedSeconds });
      if (counts.omitted + counts.contradictory + counts.unreadable + counts.unexpected > 0) {
        const sums = unaccounted.add({ calls: 1, ...counts });
        if (sums === null) log.debug({ event: 'bulk.unaccounted', calls: 1, ...counts });
        sayUnaccounted(sums);
      }
      if (counts.unpricedEntries > 0) sayUnpriced(unpriced.add({ entries: counts.unpricedEntries }));
      progress.add(counts);
    },
    failed({ event, ...facts }) {
      const { say, ...repeated } = throttle.again('bulk', facts.because);
      throttled(log, 'warn', say, { event, ...facts, ...repeated });
      setAside.failed(facts);
    },
    sizeTypes(skus) {
      sample = [...sample, ...skus].slice(0, SAMPLE);
      saySizeTypes(sizeTypes.add({ count: skus.length }));
    },
    tick() {
      sayUnaccounted(unaccounted.due());
      sayUnpriced(unpriced.due());
      saySizeTypes(sizeTypes.due());
      setAside.tick();
      progress.tick();
    },
  };
}

/** Logs SKUs with which every call fails, at once and then summed up, with the failure of the last one. */
function createSetAside(log: Log, clock: Clock) {
  const sums = createSums<{ count: number }>(clock, SUM_EVERY_MS);
  let skus: string[] = [];
  let last: Omit<Failed, 'event'> | null = null;

  function say(sum: { readonly count: number } | null): void {
    if (sum === null || last === null) return;
    const { because, httpStatus, code, problem } = last;
    log.warn({ event: 'bulk.set-aside', ...sum, skus, because, httpStatus, code, problem });
    skus = [];
  }

  return {
    failed(call: Omit<Failed, 'event'>): void {
      if (call.sku === undefined) return;
      skus = [...skus, call.sku].slice(0, SAMPLE);
      last = call;
      say(sums.add({ count: 1 }));
    },
    tick: () => say(sums.due()),
  };
}

const NOTHING = {
  calls: 0,
  skus: 0,
  resolved: 0,
  notFound: 0,
  deferred: 0,
  errors: 0,
  priceChanges: 0,
  metadataChanges: 0,
};

/**
 * Logs work done, work left, rate and estimate: after ten seconds, then every minute during a fill, else every five
 * while there are calls.
 */
function createProgress(log: Log, clock: Clock, backlog: () => Promise<BacklogCounts>) {
  let sum = { ...NOTHING };
  let since = clock.monotonic();
  let everyMs = FIRST_PROGRESS_MS;
  let fill: { readonly since: number; skus: number } | null = null;
  let filledBefore = false;
  let before: { readonly at: number; readonly skus: number } | null = null;

  /** Returns the SKUs per minute by which the backlog fell since the last reading, including other daemons' work. */
  function fallPerMinute(left: BacklogCounts, at: number): number {
    const fall =
      before === null || at <= before.at ? 0 : ((before.skus - left.skus) * MINUTE_MS) / (at - before.at);
    before = { at, skus: left.skus };
    return fall;
  }

  function say(said: typeof NOTHING, seconds: number, left: BacklogCounts | null, at: number): void {
    const perMinute = seconds === 0 ? 0 : (said.skus * 60) / seconds;
    const together = left === null ? 0 : Math.max(perMinute, fallPerMinute(left, at));
    log.info({
      event: 'reprice.progress',
      spanSeconds: Math.round(seconds),
      ...said,
      skusPerMinute: Math.round(perMinute),
      skusLeft: left?.skus ?? null,
      unfetchedLeft: left?.unfetched ?? null,
      remainingSeconds: left === null || together === 0 ? null : Math.round((left.skus * 60) / together),
    });
  }

  function noteFill(left: BacklogCounts, said: typeof NOTHING, begunAt: number, endedAt: number): void {
    if (left.unfetched >= (filledBefore ? ANOTHER_FILL : 1)) fill ??= { since: begunAt, skus: 0 };
    if (fill === null) return;
    fill.skus += said.skus;
    if (left.unfetched > 0) return;
    const durationSeconds = Math.round((endedAt - fill.since) / SECOND_MS);
    log.info({ event: 'reprice.filled', durationSeconds, skus: fill.skus });
    fill = null;
    filledBefore = true;
  }

  async function finish(said: typeof NOTHING, begunAt: number, endedAt: number): Promise<void> {
    const left = await backlog().catch(() => null);
    if (left !== null && left.unfetched > 0) everyMs = MINUTE_MS;
    say(said, (endedAt - begunAt) / SECOND_MS, left, endedAt);
    if (left !== null) noteFill(left, said, begunAt, endedAt);
  }

  return {
    add(counts: Omit<typeof NOTHING, 'calls' | 'skus'> & { readonly asked: number }): void {
      // The first call after a rest begins a new count, because the rest must not lower the rate.
      if (sum.calls === 0) since = clock.monotonic();
      sum = {
        calls: sum.calls + 1,
        skus: sum.skus + counts.asked,
        resolved: sum.resolved + counts.resolved,
        notFound: sum.notFound + counts.notFound,
        deferred: sum.deferred + counts.deferred,
        errors: sum.errors + counts.errors,
        priceChanges: sum.priceChanges + counts.priceChanges,
        metadataChanges: sum.metadataChanges + counts.metadataChanges,
      };
    },
    tick(): void {
      const now = clock.monotonic();
      if (sum.calls === 0 || now - since < everyMs) return;
      const said = sum;
      const begunAt = since;
      sum = { ...NOTHING };
      everyMs = 5 * MINUTE_MS;
      void finish(said, begunAt, now);
    },
  };
}
