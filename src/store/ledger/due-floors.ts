import type { ClaimedLane, LaneClass } from './due.ts';

/*
 * Where a process begins to read the ledger. While others hold a snapshot (pg_dump, a report, a replication slot), each
 * claim leaves an entry in the ledger's indexes, and reading a class from its beginning passes all of them: a million
 * after 12,000 calls. Rows due before the floor of their class are claimed already, except those that come back: a
 * released claim, or a SKU that had long been due and is marked for another lane. So whoever gives something back
 * resets the floors, and so does a change of the catalog. A full pass follows in any case, the more often the less it
 * costs.
 */

/** What a reading found, times in epoch milliseconds of the database's clock. */
export interface LedgerReading {
  /** When it began. */
  readonly now: number;
  /** What deltas and manifests move with all that they mark. */
  readonly catalog: string;
  /** The earliest due time in each class that has anything due. */
  readonly firsts: readonly (LaneClass & { readonly dueAt: number })[];
  /** Whether it has released all waits that were over. */
  readonly allWaitsEnded: boolean;
  /** Versions of the ledger's rows that are not vacuumed, as Postgres estimates. */
  readonly deadVersions: number;
  /** Pages of the tables whose size decides how it is best read. */
  readonly pages: readonly number[];
}

/** From where to read, in epoch milliseconds; null: from the beginning. */
export interface LedgerFloors {
  /** How often floors had been reset. */
  readonly resets: number;
  /** They hold for this catalog only. */
  readonly catalog: string | null;
  readonly of: (lane: ClaimedLane, live: boolean) => number | null;
  readonly held: number | null;
  /** Of what size those tables are (`magnitudesOf`); empty: not known yet. */
  readonly magnitudes: readonly number[];
}

/** The ledger is read from its beginning. */
export const NO_FLOORS: LedgerFloors = {
  resets: 0,
  catalog: null,
  of: () => null,
  held: null,
  magnitudes: [],
};

/** Fewer cost nothing that is worth a floor. */
const FEW_VERSIONS = 5000;
/**
 * Milliseconds between full passes for each dead version. To pass one takes half a microsecond, so full passes take a
 * two-hundredth of the time.
 */
const MS_A_VERSION = 0.1;
const MAX_MS = 60_000;
/** What is due since then may be committed only now. */
const MARGIN_MS = 5000;

/** Milliseconds from one full pass to the next, where so many versions are not vacuumed. */
export const fullPassEveryMs = (deadVersions: number): number =>
  deadVersions < FEW_VERSIONS ? 0 : Math.min(MAX_MS, deadVersions * MS_A_VERSION);

/** Sizes of tables by powers of four: a plan made for one of them is a good one until the next. Pure. */
export const magnitudesOf = (pages: readonly number[]): readonly number[] =>
  pages.map((each) => Math.ceil(Math.log2(each + 1) / 2));

const keyOf = (lane: ClaimedLane, live: boolean): string => `${lane} ${live}`;

/**
 * From where this process reads the ledger. Not shared between processes: `reset` it whenever something is given back.
 */
export class DueFloors {
  readonly #monotonic: () => number;
  readonly #everyMs: typeof fullPassEveryMs;
  #floors = NO_FLOORS;
  #resets = 0;
  #deadVersions = 0;
  #magnitudes: readonly number[] = [];
  /** Of the last reading: a clock that is set back leaves floors in the future. */
  #now = -Infinity;
  #fullAt = -Infinity;

  constructor(clock: { readonly monotonic: () => number }, everyMs = fullPassEveryMs) {
    this.#monotonic = () => clock.monotonic();
    this.#everyMs = everyMs;
  }

  /** Of the last reading: nothing before them was found due. */
  get floors(): LedgerFloors {
    return { ...this.#floors, magnitudes: this.#magnitudes };
  }

  /** From where the next reading is to read. */
  next(): LedgerFloors {
    const isFull = this.#monotonic() - this.#fullAt >= this.#everyMs(this.#deadVersions);
    const floors = isFull ? { ...NO_FLOORS, resets: this.#resets } : this.#floors;
    return { ...floors, magnitudes: this.#magnitudes };
  }

  /** Takes in what was found by a reading from `from`. */
  note(from: LedgerFloors, reading: LedgerReading): void {
    const { now, catalog, firsts, allWaitsEnded, deadVersions, pages } = reading;
    this.#magnitudes = magnitudesOf(pages);
    const wasSetBack = now < this.#now - MARGIN_MS;
    this.#now = now;
    if (wasSetBack) this.reset();
    // It may not have seen what was given back meanwhile.
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
        // Somebody has set a time long before the mirror's: -infinity, perhaps.
        return floor > 0 ? floor : null;
      },
      held: allWaitsEnded ? margin : from.held,
      magnitudes: this.#magnitudes,
    };
  }

  /** Something that was due before them is free again: the next reading passes everything. */
  reset(): void {
    this.#resets += 1;
    this.#floors = { ...NO_FLOORS, resets: this.#resets };
    this.#fullAt = -Infinity;
  }
}
