/*
 * Judges whether Postgres's clock, which all times of the mirror come from, is right. Pure. If a clock jumps while
 * this process's monotonic clock runs on, it has been set, or the machine has slept. If two of the clocks of
 * Postgres, this host and the partner differ, the third one shows which is wrong.
 */

export const CLOCKS = ['postgres', 'host', 'partner'] as const;
export type ClockName = (typeof CLOCKS)[number];

/** One reading of all clocks, in epoch milliseconds. */
export interface ClockSample {
  readonly postgres: number;
  readonly host: number;
  /** From the last answer with a Date header; null if there was none lately. */
  readonly partner: number | null;
  /** Milliseconds of this process's monotonic clock. */
  readonly monotonic: number;
  /** How far off the reading may be: half of the time that it took. */
  readonly uncertaintyMs: number;
}

/**
 * A clock that jumped. `both`: Postgres's and the host's jumped equally far, because they are one clock or the
 * machine has slept.
 */
export interface ClockJump {
  readonly clock: 'postgres' | 'host' | 'both';
  /** Positive: forward. */
  readonly ms: number;
}

export interface WrongClock {
  readonly clock: ClockName | 'unknown';
  /**
   * Milliseconds ahead of the others; negative: behind. If `clock` is `unknown`: how far Postgres's is ahead of
   * the host's.
   */
  readonly aheadMs: number;
}

/**
 * Which clock has jumped. `ahead`: only Postgres's, forward. It was set, or this machine and its clocks stood
 * still, like a paused virtual machine.
 */
type Suspect = ClockJump['clock'] | 'ahead';

export interface ClockJudgement {
  readonly jump: ClockJump | null;
  readonly wrong: WrongClock | null;
  /** The clock that jumped last, while clocks differ or it is unknown whether they do. For the next judgement. */
  readonly suspect: Suspect | null;
  /**
   * How far only the partner's clock was last ahead (negative: behind); null if it last agreed with ours, or is
   * unknown. Also for the next judgement.
   */
  readonly partnerAheadMs: number | null;
}

/** A reading, and what its judgement leaves to the next one. */
export interface ClocksBefore extends Pick<ClockJudgement, 'suspect' | 'partnerAheadMs'> {
  readonly sample: ClockSample;
}

export type ClockEvent =
  | ({ readonly event: 'clock.jumped' } & ClockJump)
  /** Postgres's clock was set back, and the times it had written were corrected. */
  | { readonly event: 'clock.set-back'; readonly seconds: number; readonly ms: number }
  /** The same, but Postgres refused to correct `part`, and `problem` says why. */
  | {
      readonly event: 'clock.not-put-right';
      readonly part: string;
      readonly problem: string;
      readonly hint: string;
    }
  | { readonly event: 'clock.compared'; readonly wrong: WrongClock | null };

/** A larger step is neither drift nor a delayed reading. */
const JUMP_MS = 2000;
/**
 * NTP keeps clocks within milliseconds; the partner's Date has whole seconds and is slightly old when it arrives.
 */
const DIFFERS_MS = 60_000;

/** Judges a reading against the one before it (null: there is none) and the suspect that one left. */
export function judgeClocks(before: ClocksBefore | null, now: ClockSample): ClockJudgement {
  const jump = before === null ? null : jumpBetween(before.sample, now);
  const known = before?.partnerAheadMs ?? null;
  // The partner's time is its last Date plus the time since, which nobody counted if this machine stood still.
  const partner = jump !== null && mayHaveStoodStill(jump) ? null : now.partner;
  const left = suspectAfter(jump, before);
  // If the partner was off before and still is by as much, both clocks were right to jump.
  const hasSlept =
    left === 'both' && partner !== null && known !== null && !differ(now, partner - now.host, known);
  const suspect = hasSlept ? null : left;
  const wrong = wrongOf({ ...now, partner }, suspect, known);
  const isOpen = wrong === null ? suspect === 'both' && partner === null : wrong.clock !== 'partner';
  const isTold = partner !== null && (wrong === null || wrong.clock === 'partner');
  const partnerAheadMs = isTold ? (wrong?.aheadMs ?? null) : known;
  return { jump, wrong, suspect: isOpen ? told(suspect, wrong) : null, partnerAheadMs };
}

const suspectOf = ({ clock, ms }: ClockJump): Suspect => (clock === 'postgres' && ms > 0 ? 'ahead' : clock);

/** Returns whether time itself may have jumped: the machine slept or stood still, and its clocks with it. Pure. */
export function mayHaveStoodStill(jump: ClockJump): boolean {
  const suspect = suspectOf(jump);
  return suspect === 'both' || suspect === 'ahead';
}

/** Returns the suspect after a jump. Setting a clock does not explain a difference that existed before. */
function suspectAfter(jump: ClockJump | null, before: ClocksBefore | null): Suspect | null {
  if (before === null) return null;
  const { sample, suspect } = before;
  if (jump === null) return suspect;
  return !mayHaveStoodStill(jump) && differ(sample, sample.postgres, sample.host) ? suspect : suspectOf(jump);
}

/** Returns the suspect: the clock that the partner has shown to be wrong, once it has. */
function told(suspect: Suspect | null, wrong: WrongClock | null): Suspect | null {
  const isTold = suspect === 'ahead' && (wrong?.clock === 'postgres' || wrong?.clock === 'host');
  return isTold ? wrong.clock : suspect;
}

function differ({ uncertaintyMs }: ClockSample, a: number, b: number): boolean {
  return Math.abs(a - b) > DIFFERS_MS + uncertaintyMs;
}

function jumpBetween(before: ClockSample, now: ClockSample): ClockJump | null {
  const passed = now.monotonic - before.monotonic;
  const slack = JUMP_MS + before.uncertaintyMs + now.uncertaintyMs;
  const postgres = now.postgres - before.postgres - passed;
  const host = now.host - before.host - passed;
  const jumped = (ms: number) => Math.abs(ms) > slack;
  if (jumped(postgres) && jumped(host) && !jumped(postgres - host)) return { clock: 'both', ms: postgres };
  if (jumped(postgres)) return { clock: 'postgres', ms: postgres };
  return jumped(host) ? { clock: 'host', ms: host } : null;
}

function wrongOf(
  sample: ClockSample,
  suspect: Suspect | null,
  partnerAheadMs: number | null,
): WrongClock | null {
  const { postgres, host, partner } = sample;
  const [isPostgres, isHost] = [
    { clock: 'postgres', aheadMs: postgres - host },
    { clock: 'host', aheadMs: host - postgres },
  ] as const;
  if (!differ(sample, postgres, host)) {
    if (partner === null || !differ(sample, partner, host)) return null;
    // Two clocks that are one, and were set, prove nothing by agreeing.
    const isOne = suspect === 'both';
    return isOne
      ? { ...isPostgres, aheadMs: postgres - partner }
      : { clock: 'partner', aheadMs: partner - host };
  }
  if (partner !== null && !differ(sample, partner, host)) return isPostgres;
  if (partner !== null && !differ(sample, partner, postgres)) return isHost;
  // The partner is unknown, or agrees with neither. If it was off before, it may still be off by as much.
  const wasOff = suspect === 'ahead' && partner !== null && partnerAheadMs !== null;
  if (wasOff && !differ(sample, partner - partnerAheadMs, host)) return isPostgres;
  if (wasOff && !differ(sample, partner - partnerAheadMs, postgres)) return isHost;
  if (suspect === 'postgres' || suspect === 'host') return suspect === 'postgres' ? isPostgres : isHost;
  return { ...isPostgres, clock: 'unknown' };
}
