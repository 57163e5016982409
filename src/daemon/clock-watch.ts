import type { Clock } from '../lib/clock.ts';
import { doubling } from '../lib/duration.ts';
import {
  type DatabaseClock,
  noteClock,
  NOTHING_RIGHT,
  NotPutRight,
  putClockRight,
  readClock,
  type SteadySince,
  takeBackUnsteady,
} from '../store/clock.ts';
import type { Sql } from '../store/connection/db.ts';
import {
  type ClockEvent,
  type ClockSample,
  type ClocksBefore,
  judgeClocks,
  mayHaveStoodStill,
  type WrongClock,
} from '../sync/clocks.ts';
import { hintFor, problemOf } from '../sync/steps.ts';

/** Watches the clocks, and corrects times that Postgres's clock wrote while it was ahead. */
export interface ClockWatch {
  /** Reads the clocks once. Throws if Postgres does not answer. */
  check(): Promise<void>;
  /** Notes the time that an answer of the partner named. */
  partnerAnswered(date: Date): void;
  /** Returns which clock is wrong, by the last reading. */
  wrong(): WrongClock | null;
  /** Returns what Postgres last refused to correct; null if nothing. */
  notPutRight(): Unright | null;
}

/** Times that Postgres refuses to correct: where they are, why, and what to do. */
export type Unright = Omit<Extract<ClockEvent, { event: 'clock.not-put-right' }>, 'event'>;

/** A clock this far behind its high-water mark was set back; smaller steps are normal corrections, and harmless. */
export const SET_BACK_MS = 2000;
const NOTE_EVERY_MS = 5000;
/** After a longer time without any daemon it is unknown whether the clock ran as it should. */
const UNWATCHED_MS = 3_600_000;
/** The Date of an answer has whole seconds. */
const DATE_PRECISION_MS = 1000;
const PARTNER_KNOWN_MS = 3_600_000;
/** A refused correction is tried again after this time, which doubles up to the other. */
const RIGHT_AGAIN_MS = 2000;
const RIGHT_AGAIN_MAX_MS = 60_000;

/**
 * Creates a watch of the clocks of Postgres, of this host and of the partner; `emit` receives its events. Nothing
 * runs by itself: call `check` regularly.
 */
export function createClockWatch(sql: Sql, clock: Clock, emit: (event: ClockEvent) => void): ClockWatch {
  let before: ClocksBefore | null = null;
  let wrong: WrongClock | null = null;
  let partner: { readonly time: number; readonly monotonic: number } | null = null;
  /** The note made after a time without any daemon, which is taken back once all three clocks agree. */
  let unwatched: SteadySince | null = null;
  const right = createPuttingRight(sql, clock, emit);

  function partnerNow(monotonic: number): number | null {
    if (partner === null || monotonic - partner.monotonic > PARTNER_KNOWN_MS) return null;
    return partner.time + (monotonic - partner.monotonic);
  }

  async function read(): Promise<{ sample: ClockSample; row: DatabaseClock } | null> {
    const from = clock.monotonic();
    const row = await readClock(sql);
    const host = clock.now();
    const until = clock.monotonic();
    if (row === null) return null;
    // All times are as of the end of the reading, which may have been suspended for long.
    const uncertaintyMs = (until - from) / 2;
    const postgres = row.now + uncertaintyMs;
    return { row, sample: { postgres, host, partner: partnerNow(until), monotonic: until, uncertaintyMs } };
  }

  return {
    partnerAnswered(date) {
      partner = { time: date.getTime() + DATE_PRECISION_MS / 2, monotonic: clock.monotonic() };
    },
    wrong: () => wrong,
    notPutRight: right.refused,
    async check() {
      const found = await read();
      if (found === null) return;
      const { row, sample } = found;
      const { jump, wrong: nowWrong, ...left } = judgeClocks(before, sample);
      const isFirst = before === null;
      before = { sample, ...left };
      wrong = nowWrong;
      if (jump !== null && mayHaveStoodStill(jump)) partner = null;
      if (jump !== null) emit({ event: 'clock.jumped', ...jump });
      emit({ event: 'clock.compared', wrong });
      const isSetBack = row.highWater - row.now > SET_BACK_MS || row.setBackSeconds !== null;
      if (isSetBack) await right.put();
      else right.isRight();
      const steady = jump?.clock !== 'postgres' && jump?.clock !== 'both';
      const watched = !isFirst || row.now - row.highWater < UNWATCHED_MS;
      const ahead = aheadSecondsOf(wrong);
      const isNews = ahead !== undefined && ahead !== row.aheadSeconds;
      if (isSetBack || !steady) unwatched = null;
      if (isNews || !(steady && watched) || row.now - row.highWater > NOTE_EVERY_MS) {
        const noted = await noteClock(sql, {
          steady: steady && watched,
          ...(ahead !== undefined && { aheadSeconds: ahead }),
        });
        if (!watched && !isSetBack) unwatched = noted;
      }
      if (unwatched === null || wrong !== null || jump !== null || sample.partner === null) return;
      await takeBackUnsteady(sql, unwatched);
      unwatched = null;
    },
  };
}

/**
 * Corrects what a clock wrote before it was set back, and reports that. Retries less and less often if Postgres
 * refuses.
 */
function createPuttingRight(sql: Sql, clock: Clock, emit: (event: ClockEvent) => void) {
  const done = { ...NOTHING_RIGHT };
  let refused: Unright | null = null;
  let [failures, againAt] = [0, 0];
  return {
    refused: () => refused,
    /** Nothing is to be corrected, or another daemon has done it. */
    isRight(): void {
      Object.assign(done, NOTHING_RIGHT);
      [failures, refused] = [0, null];
    },
    /** Throws if Postgres does not answer, or takes no writes. */
    async put(): Promise<void> {
      const from = clock.monotonic();
      if (failures > 0 && from < againAt) return;
      try {
        const setBack = await putClockRight(sql, done);
        [failures, refused] = [0, null];
        const ms = clock.monotonic() - from;
        if (setBack !== null) emit({ event: 'clock.set-back', seconds: setBack.seconds, ms });
      } catch (error) {
        if (!(error instanceof NotPutRight)) throw error;
        failures += 1;
        againAt = clock.monotonic() + doubling(RIGHT_AGAIN_MS, failures, RIGHT_AGAIN_MAX_MS);
        refused = { part: error.part, problem: problemOf(error.cause), hint: hintFor([error.cause]) };
        emit({ event: 'clock.not-put-right', ...refused });
      }
    },
  };
}

/** Returns what to store about Postgres's clock; undefined if it cannot be determined. */
function aheadSecondsOf(wrong: WrongClock | null): number | null | undefined {
  if (wrong === null) return null;
  if (wrong.clock === 'unknown') return undefined;
  return wrong.clock === 'postgres' ? Math.round(wrong.aheadMs / 1000) : null;
}
