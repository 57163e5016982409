import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, jsonb, real, smallint, text } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/**
 * The due ledger: one row for each known SKU, saying when its next refresh is due and why. A claim (a worker has
 * asked the partner) and a wait (deferred, error) both hold the row back until `held_until`.
 */
export const due = internal.table(
  'due',
  {
    sku: key().primaryKey(),
    lane: smallint().notNull(),
    reason: text().notNull(),
    /** Counts against the live budget: listed as live, or deferred although listed as snapshot. */
    live: boolean().notNull().default(false),
    /**
     * How often a deferral has made it count although it is not listed as live, and so many answers more it does for
     * that.
     */
    liveMarks: smallint('live_marks').notNull().default(0),
    liveLeft: smallint('live_left').notNull().default(0),
    dueAt: instant('due_at').notNull(),
    /** Counts the marks: an answer settles the row only if no mark came after its claim. */
    generation: integer().notNull().default(0),
    claim: bigint({ mode: 'bigint' }),
    heldUntil: instant('held_until'),
    /** The claim whose answer was applied last. */
    askedClaim: bigint('asked_claim', { mode: 'bigint' }),
    /** The reason for which it was asked then; null where another mark has come since its claim. */
    askedBecause: text('asked_because'),
    /** The generation that it had then: who waits for an answer to a mark compares it with the mark's. */
    askedGeneration: integer('asked_generation'),
    deferrals: integer().notNull().default(0),
    failures: integer().notNull().default(0),
    /** Why its last answer was an error, or no more than a deferral (store/answer/types.ts); null: it was none. */
    lastError: text('last_error'),
    /**
     * Order within the urgent lane, largest first: the weight in catalog.watchlist; infinity while a refresh was
     * asked for by name.
     */
    rank: real().notNull().default(1),
    /**
     * After a call that failed as a whole: how many SKUs the next call with this one may have. Null: as many as any.
     */
    largestCall: smallint('largest_call'),
    /**
     * From when on it comes first, to keep the promise of its age; null: none is to be kept
     * (store/sellers/promises.ts).
     */
    promisedAt: instant('promised_at'),
    /** When its price is as old as is promised: of those that come first, the earliest is asked first. */
    promisedBy: instant('promised_by'),
    /**
     * Why its prices are not acted on before a second answer (store/answer/doubts.ts), since which answer, and what
     * they were before.
     */
    doubt: text(),
    oddity: text(),
    doubtedAt: instant('doubted_at'),
    believed: jsonb(),
    /**
     * From when on an answer is the second look after one that had nothing new of what was reported
     * (store/answer/second-looks.ts); null: none is to come.
     */
    againAt: instant('again_at'),
    /**
     * How many moves of it the delta has left out since it last reported one (store/catalog/audit.ts). As long as there
     * is one, it is refreshed and trusted as a SKU whose moves nobody reports. Null: none.
     */
    missedMoves: smallint('missed_moves'),
    /**
     * Of a SKU that is out of scope: when it would be due. It has no lane (0) then, unless it is asked once for its
     * metadata.
     */
    outsideDueAt: instant('outside_due_at'),
  },
  (t) => [
    index('due_claim')
      .on(t.live, t.lane, t.dueAt)
      .where(sql`held_until is null and largest_call is null`),
    index('due_urgent')
      .on(t.live, t.rank.desc().nullsFirst(), t.dueAt)
      .where(sql`held_until is null and largest_call is null and lane = 1`),
    index('due_promised')
      .on(t.live, t.promisedBy)
      .where(sql`held_until is null and largest_call is null and promised_by is not null`),
    index('due_held')
      .on(t.heldUntil)
      .where(sql`held_until is not null`),
    index('due_suspects')
      .on(t.largestCall, t.live, t.dueAt)
      .where(sql`held_until is null and largest_call is not null`),
    index('due_doubted')
      .on(t.doubtedAt)
      .where(sql`doubt is not null`),
  ],
);

/** One row: what bulk calls have taught about their size (sync/reprice/call-size.ts). */
export const callSize = internal.table(
  'call_size',
  {
    id: boolean().primaryKey().default(true),
    step: integer().notNull().default(0),
    size: integer(),
    failing: integer(),
    suspected: integer(),
    proven: integer().notNull().default(0),
    worked: integer().notNull().default(0),
    patience: integer().notNull().default(40),
  },
  (t) => [check('call_size_one_row', sql`${t.id}`)],
);

export const claimNumbers = internal.sequence('claim_numbers');
