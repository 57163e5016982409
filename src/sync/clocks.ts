/*
 * Is Postgres's clock right, by which all times of the mirror are? Pure. A clock that jumps while the monotonic clock of this process
 * runs on has been set, or the machine has slept. Where two clocks differ, a third one tells which of them is wrong: of Postgres, this
 * host and the partner.
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

/** A clock that was set; `both`: Postgres's and the host's alike, as where they are one, or the machine has slept. */
export interface ClockJump {
  readonly clock: 'postgres' | 'host' | 'both';
  /** Forward, or negative. */
  readonly ms: number;
}

export interface WrongClock {
  readonly clock: ClockName | 'unknown';
  /** Ahead of the others, or negative; where it is not known which clock is wrong, that of Postgres ahead of the host's. */
  readonly aheadMs: number;
}

export interface ClockJudgement {
  readonly jump: ClockJump | null;
  readonly wrong: WrongClock | null;
  /** The clock of the last jump while clocks differ, or nobody knows whether they do: for the next judgement. */
  readonly suspect: ClockJump['clock'] | null;
}

/** What a daemon sees of the clocks. */
export type ClockEvent =
  | ({ readonly event: 'clock.jumped' } & ClockJump)
  /** Postgres's clock was set back, and what it had written is put right. */
  | { readonly event: 'clock.set-back'; readonly seconds: number; readonly ms: number }
  | { readonly event: 'clock.compared'; readonly wrong: WrongClock | null };

/** A step beyond this is no drift, and no delay of a reading. */
const JUMP_MS = 2000;
/** NTP keeps clocks within milliseconds; the partner's Date has whole seconds, and is some old when it arrives. */
const DIFFERS_MS = 60_000;

/** Judges a reading by the one before (null: there is none) and what that one left suspect. */
export function judgeClocks(
  before: { readonly sample: ClockSample; readonly suspect: ClockJudgement['suspect'] } | null,
  now: ClockSample,
): ClockJudgement {
  const jump = before === null ? null : jumpBetween(before.sample, now);
  const left = before?.suspect ?? null;
  const suspect = jump?.clock ?? left;
  // What the partner's last answer said it said before; where the machine has slept meanwhile, nobody has counted the time.
  const partner = jump?.clock === 'both' ? null : now.partner;
  const wrong = wrongOf({ ...now, partner }, suspect);
  const isOpen = wrong === null ? suspect === 'both' && partner === null : wrong.clock !== 'partner';
  return { jump, wrong, suspect: isOpen ? suspect : null };
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
  { postgres, host, partner, uncertaintyMs }: ClockSample,
  suspect: ClockJudgement['suspect'],
): WrongClock | null {
  const differ = (a: number, b: number) => Math.abs(a - b) > DIFFERS_MS + uncertaintyMs;
  const [isPostgres, isHost] = [
    { clock: 'postgres', aheadMs: postgres - host },
    { clock: 'host', aheadMs: host - postgres },
  ] as const;
  if (!differ(postgres, host)) {
    if (partner === null || !differ(partner, host)) return null;
    // That two agree says nothing where they are one, and it was set.
    const isOne = suspect === 'both';
    return isOne
      ? { ...isPostgres, aheadMs: postgres - partner }
      : { clock: 'partner', aheadMs: partner - host };
  }
  if (partner !== null && !differ(partner, host)) return isPostgres;
  if (partner !== null && !differ(partner, postgres)) return isHost;
  if (partner === null && suspect !== null && suspect !== 'both')
    return suspect === 'postgres' ? isPostgres : isHost;
  return { ...isPostgres, clock: 'unknown' };
}
