/*
 * All times of the mirror go by Postgres's clock: judges whether it is right. Pure. If a clock jumps while the
 * monotonic clock of this process runs on, it has been set, or the machine has slept. If two of the clocks of Postgres,
 * this host and the partner differ, the third one tells which of them is wrong.
 */

export const CLOCKS = ['postgres', 'host', 'partner'] as const;
export type ClockName = (typeof CLOCKS)[number];

/** One reading of all clocks, in epoch milliseconds. */
export interface ClockSample {
  readonly postgres: number;
  readonly host: number;
  /** By the last answer that had a Date; null where there was none lately. */
  readonly partner: number | null;
  /** Of this process: milliseconds that only ever grow. */
  readonly monotonic: number;
  /** The reading may be off by so much: half of the time that it took. */
  readonly uncertaintyMs: number;
}

/**
 * A clock that jumped. `both`: those of Postgres and the host by as much, because they are one clock or the machine has
 * slept.
 */
export interface ClockJump {
  readonly clock: 'postgres' | 'host' | 'both';
  /** Forward, or negative. */
  readonly ms: number;
}

export interface WrongClock {
  readonly clock: ClockName | 'unknown';
  /**
   * Milliseconds ahead of the others; negative: behind. If it is `unknown` which clock is wrong: Postgres's ahead of
   * the host's.
   */
  readonly aheadMs: number;
}

/**
 * Which clock has jumped. `ahead`: only that of Postgres, forward. It was set, or this machine and its clocks have
 * stood still, like a virtual machine that is paused.
 */
type Suspect = ClockJump['clock'] | 'ahead';

export interface ClockJudgement {
  readonly jump: ClockJump | null;
  readonly wrong: WrongClock | null;
  /** By the last jump, while clocks differ, or nobody knows whether they do: for the next judgement. */
  readonly suspect: Suspect | null;
  /**
   * By how much the partner's clock alone was last ahead, or behind; null: it last agreed with ours, or is not known.
   * For the next judgement, too.
   */
  readonly partnerAheadMs: number | null;
}

/** A reading, and what its judgement leaves to the next one. */
export interface ClocksBefore extends Pick<ClockJudgement, 'suspect' | 'partnerAheadMs'> {
  readonly sample: ClockSample;
}

/** What a daemon sees of the clocks. */
export type ClockEvent =
  | ({ readonly event: 'clock.jumped' } & ClockJump)
  /** Postgres's clock was set back, and what it had written is put right. */
  | { readonly event: 'clock.set-back'; readonly seconds: number; readonly ms: number }
  /** The same, but Postgres has refused to put `part` right. `problem` is what it says of that. */
  | {
      readonly event: 'clock.not-put-right';
      readonly part: string;
      readonly problem: string;
      readonly hint: string;
    }
  | { readonly event: 'clock.compared'; readonly wrong: WrongClock | null };

/** A step beyond this is no drift, and no delay of a reading. */
const JUMP_MS = 2000;
/** NTP keeps clocks within milliseconds; the partner's Date has whole seconds, and is some old when it arrives. */
const DIFFERS_MS = 60_000;

/** Judges a reading by the one before (null: there is none) and what that one left suspect. */
export function judgeClocks(before: ClocksBefore | null, now: ClockSample): ClockJudgement {
  const jump = before === null ? null : jumpBetween(before.sample, now);
  const known = before?.partnerAheadMs ?? null;
  // What the partner's last answer said it said before; where nobody has counted the time since, that tells nothing.
  const partner = jump !== null && mayHaveStoodStill(jump) ? null : now.partner;
  const left = suspectAfter(jump, before);
  // Where the partner was off and is so by as much, both were right to jump.
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

/**
 * Whether a jump may be one of the time itself: the machine has slept, or stood still, and its clocks with it. Pure.
 */
export function mayHaveStoodStill(jump: ClockJump): boolean {
  const suspect = suspectOf(jump);
  return suspect === 'both' || suspect === 'ahead';
}

/** A clock that is set where they differed already does not explain that they do. */
function suspectAfter(jump: ClockJump | null, before: ClocksBefore | null): Suspect | null {
  if (before === null) return null;
  const { sample, suspect } = before;
  if (jump === null) return suspect;
  return !mayHaveStoodStill(jump) && differ(sample, sample.postgres, sample.host) ? suspect : suspectOf(jump);
}

/** Once the partner has told which of two clocks is wrong, that one is suspected. */
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
    // That two agree says nothing where they are one, and it was set.
    const isOne = suspect === 'both';
    return isOne
      ? { ...isPostgres, aheadMs: postgres - partner }
      : { clock: 'partner', aheadMs: partner - host };
  }
  if (partner !== null && !differ(sample, partner, host)) return isPostgres;
  if (partner !== null && !differ(sample, partner, postgres)) return isHost;
  // The partner is not there, or agrees with neither; where it was off, it may be so by as much.
  const wasOff = suspect === 'ahead' && partner !== null && partnerAheadMs !== null;
  if (wasOff && !differ(sample, partner - partnerAheadMs, host)) return isPostgres;
  if (wasOff && !differ(sample, partner - partnerAheadMs, postgres)) return isHost;
  if (suspect === 'postgres' || suspect === 'host') return suspect === 'postgres' ? isPostgres : isHost;
  return { ...isPostgres, clock: 'unknown' };
}
