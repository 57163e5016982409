import type { ClaimedLane, LaneClass } from './due.ts';

/*
 * Where a process begins to read the ledger. While others hold a snapshot (pg_dump, a report, a replication slot),
 * each claim leaves an entry in the ledger's indexes, and reading a class from its beginning passes all of them: a
 * million after 12,000 calls. Rows due before the floor of their class are already claimed, except those that come
 * back: a released claim, or a SKU that had long been due and is marked for another lane. So whoever gives something
 * back resets the floors, and so does a change of the catalog. Full passes happen in any case, more often the less
 * they cost.
 */

/** What one reading found; times are epoch milliseconds by the database's clock. */
export interface LedgerReading {
  readonly now: number;
  /** Moves whenever a delta or manifest marks SKUs. */
  readonly catalog: string;
  /** The earliest due time in each class that has anything due. */
  readonly firsts: readonly (LaneClass & { readonly dueAt: number })[];
  /** Whether the reading released all waits that were over. */
  readonly allWaitsEnded: boolean;
  /** Row versions of the ledger that are not vacuumed, by Postgres's estimate. */
  readonly deadVersions: number;
  /** Pages of the tables whose size decides how the ledger is best read. */
  readonly pages: readonly number[];
}

/** Where to read from, in epoch milliseconds; null: from the beginning. */
export interface LedgerFloors {
  /** How often the floors had been reset. */
  readonly resets: number;
  /** The catalog that the floors are valid for. */
  readonly catalog: string | null;
  readonly of: (lane: ClaimedLane, live: boolean) => number | null;
  readonly held: number | null;
  /** Magnitudes of those tables (`magnitudesOf`); empty if not known yet. */
  readonly magnitudes: readonly number[];
}

/** Reads the ledger from its beginning. */
export const NO_FLOORS: LedgerFloors = {
  resets: 0,
  catalog: null,
  of: () => null,
  held: null,
  magnitudes: [],
};

/** Fewer versions are not worth a floor. */
const FEW_VERSIONS = 5000;
/**
 * Milliseconds between full passes per dead version. Passing one takes half a microsecond, so full passes take a
 * two-hundredth of the time.
 */
const MS_A_VERSION = 0.1;
const MAX_MS = 60_000;
/** A row that became due within this time may be committed only now. */
const MARGIN_MS = 5000;

/** Returns the milliseconds between full passes while this many versions are not vacuumed. */
export const fullPassEveryMs = (deadVersions: number): number =>
  deadVersions < FEW_VERSIONS ? 0 : Math.min(MAX_MS, deadVersions * MS_A_VERSION);

/** Returns the sizes of tables as powers of four: a plan made for one of them stays good until the next. Pure. */
export const magnitudesOf = (pages: readonly number[]): readonly number[] =>
  pages.map((each) => Math.ceil(Math.log2(each + 1) / 2));

const keyOf = (lane: ClaimedLane, live: boolean): string => `${lane} ${live}`;

/**
 * Where this process reads the ledger from. Not shared between processes: `reset` it whenever something is given
 * back.
 */
export class DueFloors {
  readonly #monotonic: () => number;
  readonly #everyMs: typeof fullPassEveryMs;
  #floors = NO_FLOORS;
  #resets = 0;
  #deadVersions = 0;
  #magnitudes: readonly number[] = [];
  /** Time of the last reading: a clock that is set back leaves floors in the future. */
  #now = -Infinity;
  #fullAt = -Infinity;

  constructor(clock: { readonly monotonic: () => number }, everyMs = fullPassEveryMs) {
    this.#monotonic = () => clock.monotonic();
    this.#everyMs = everyMs;
  }

  /** The floors of the last reading, which found nothing due before them. */
  get floors(): LedgerFloors {
    return { ...this.#floors, magnitudes: this.#magnitudes };
  }

  /** Returns where the next reading starts. */
  next(): LedgerFloors {
    const isFull = this.#monotonic() - this.#fullAt >= this.#everyMs(this.#deadVersions);
    const floors = isFull ? { ...NO_FLOORS, resets: this.#resets } : this.#floors;
    return { ...floors, magnitudes: this.#magnitudes };
  }

  /** Takes in the result of a reading that started at `from`. */
  note(from: LedgerFloors, reading: LedgerReading): void {
    const { now, catalog, firsts, allWaitsEnded, deadVersions, pages } = reading;
    this.#magnitudes = magnitudesOf(pages);
    const wasSetBack = now < this.#now - MARGIN_MS;
    this.#now = now;
    if (wasSetBack) this.reset();
    // The reading may have missed what was given back meanwhile.
    if (from.resets !== this.#resets) return;
    if (from.catalog !== catalog) this.#fullAt = this.#monotonic();
    this.#deadVersions = deadVersions;
    const margin = now - MARGIN_MS;
    const starts = new Map(
      firsts.map(({ lane, live, dueAt }) => [keyOf(lane, live), Math.min(dueAt, margin)]),
    );
    this.#floors = {
      resets: this.#resets,
      catalog,
      of: (lane, live) => {
        const floor = starts.get(keyOf(lane, live)) ?? margin;
        // A time long before the mirror existed was set by hand, perhaps -infinity.
        return floor > 0 ? floor : null;
      },
      held: allWaitsEnded ? margin : from.held,
      magnitudes: this.#magnitudes,
    };
  }

  /** Something due before the floors is free again: the next reading starts from the beginning. */
  reset(): void {
    this.#resets += 1;
    this.#floors = { ...NO_FLOORS, resets: this.#resets };
    this.#fullAt = -Infinity;
  }
}
