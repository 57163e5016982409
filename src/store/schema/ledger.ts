import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, jsonb, real, smallint, text } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/**
 * The due ledger: one row for each known SKU, with when its next refresh is due and why. A claim (a worker has asked
 * the partner) and a wait (deferred, error) both block the row until `held_until`.
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
     * How often a deferral has made it count as live although it is not listed so, and for how many more answers it
     * does.
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
    /** The reason for which it was asked then; null if another mark came after its claim. */
    askedBecause: text('asked_because'),
    /** Its generation then: whoever waits for an answer to a mark compares this with the mark's generation. */
    askedGeneration: integer('asked_generation'),
    deferrals: integer().notNull().default(0),
    failures: integer().notNull().default(0),
    /** Why its last answer was an error or only a deferral (store/answer/types.ts); null if it was neither. */
    lastError: text('last_error'),
    /**
     * Order within the urgent lane, largest first: the weight in catalog.watchlist, or infinity while a refresh by
     * name is due.
     */
    rank: real().notNull().default(1),
    /**
     * After a call that failed as a whole: how many SKUs the next call with this one may have. Null: no limit of its
     * own.
     */
    largestCall: smallint('largest_call'),
    /**
     * From when on it comes first, to keep its promised age; null if there is no promise to keep
     * (store/sellers/promises.ts).
     */
    promisedAt: instant('promised_at'),
    /** When its price reaches the promised age: of the SKUs that come first, the earliest is asked first. */
    promisedBy: instant('promised_by'),
    /**
     * Why its prices are not acted on before a second answer (store/answer/doubts.ts), since which answer, and the
     * prices before it.
     */
    doubt: text(),
    oddity: text(),
    doubtedAt: instant('doubted_at'),
    believed: jsonb(),
    /**
     * From when on an answer is the second look after one with nothing new about a report
     * (store/answer/second-looks.ts); null if none is to come.
     */
    againAt: instant('again_at'),
    /**
     * How many of its moves the delta has left out since it last reported one (store/catalog/audit.ts). While there
     * are any, it is refreshed and trusted like a SKU whose moves nobody reports. Null: none.
     */
    missedMoves: smallint('missed_moves'),
    /**
     * When a SKU that is out of scope would be due. It then has no lane (0), unless it is asked once for its
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

/** One row: what bulk calls have taught about their best size (sync/reprice/call-size.ts). */
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
