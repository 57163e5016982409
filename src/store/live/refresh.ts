import type { Tx } from '../connection/db.ts';
import type { HintTest, PredictedMove, PredictionTest, WaitingHint } from './hint-state.ts';
import type { HeldLine, Wholesale } from './product-line-state.ts';
import type { Memories, Rate } from './rate-prior.ts';

/** A refresh of a live SKU: what it found, and what was known before. */
export interface LiveRefresh extends LiveCandidate {
  /** Whether a price changed since the previous refresh. */
  readonly moved: boolean;
  /** How many sizes had a price, and how many of these moved. */
  readonly sizes?: { readonly held: number; readonly moved: number } | undefined;
  /** Prices that moved since then, by size: before and after. */
  readonly prices?: ReadonlyMap<string, { readonly from: number | null; readonly to: number | null }>;
  /** What alpha and beta consist of; null if nothing is known yet, or only what an earlier version learned. */
  readonly memories?: Memories | null;
  /** The move that the previous refresh found after hints had told of it; null if there was none. */
  readonly prediction?: PredictedMove | null;
  /** Sizes in earlier refreshes that found a move, and how many of them had moved; null if nothing is known yet. */
  readonly sizesSeen?: number | null;
  readonly sizesMoved?: number | null;
  /** When it was asked for, in minutes since 1970. */
  readonly at?: number;
  /** Its line; null if it has none, or is not listed as live. */
  readonly line?: HeldLine | null;
  /** How often it has moved wholesale by itself, in how many minutes; null if nothing is known yet. */
  readonly wholesaleMoves?: number | null;
  readonly wholesaleMinutes?: number | null;
  /** Hints about it since the previous refresh; null if there were none. */
  readonly hints?: readonly WaitingHint[] | null;
  /** Mean minutes between two changes of a SKU about which nothing is known (store/live/rate-prior.ts). */
  readonly priorMinutes?: number;
}

/** What a refresh taught, and when the next one is due. */
export interface LearnedRefresh extends Rate {
  readonly sku: string;
  /** What alpha and beta consist of; absent if only of themselves. */
  readonly memories?: Memories;
  readonly sizesSeen: number;
  readonly sizesMoved: number;
  /** How often it moves wholesale by itself; absent if unknown. */
  readonly wholesale?: Wholesale;
  /** What it shows about the sources that hinted at it. */
  readonly hintTests?: readonly HintTest[];
  /** The move that hints had told of, and what became of the one before. */
  readonly prediction?: PredictedMove | null;
  readonly predictionTests?: readonly PredictionTest[];
  readonly nextMs: number;
}

/** A live SKU that may be refreshed, and what is known about it. */
export interface LiveCandidate {
  readonly sku: string;
  readonly weight: number;
  /** Null if nothing is known yet. */
  readonly alpha: number | null;
  readonly beta: number | null;
  /** `prior` of a Rate, if it was asked for. */
  readonly prior?: number | null;
  /**
   * If nothing is known yet: how many refreshes of the last three days found a moved price, and how many minutes
   * those cover.
   */
  readonly pastMoves?: number | null;
  readonly pastMinutes?: number | null;
  /** Minutes since the last refresh; null if there was none. */
  readonly minutes: number | null;
  /** It was drawn at random and is due for that, whatever a refresh is worth. */
  readonly random?: boolean;
  /** With a probability of 1 − e^−hazard it has moved with its line, or as hints say; null if nothing suggests it. */
  readonly hazard?: number | null;
}

/** SQL: both memories of a row `r` of live_rates, as JSON; null if it has none. */
export const heldMemories = (tx: Tx) => tx`
  case when r.short_odds is not null then json_build_object(
    'long', json_build_object('alpha', r.long_alpha, 'beta', r.long_beta, 'prior', r.long_prior),
    'short', json_build_object('alpha', r.short_alpha, 'beta', r.short_beta, 'prior', r.short_prior), 'odds', r.short_odds) end`;

/**
 * Writes what one answer taught about live SKUs. Call it after their products are written, because these determine
 * their lines.
 */
export async function writeRates(tx: Tx, rates: readonly LearnedRefresh[]): Promise<void> {
  if (rates.length === 0) return;
  const rows = rates.map(
    ({ sku, alpha, beta, prior, memories, sizesSeen, sizesMoved, wholesale, prediction }) => ({
      sku,
      alpha,
      beta,
      long_alpha: memories?.long.alpha,
      long_beta: memories?.long.beta,
      short_alpha: memories?.short.alpha,
      short_beta: memories?.short.beta,
      short_odds: memories?.odds,
      prior_part: prior,
      long_prior: memories?.long.prior,
      short_prior: memories?.short.prior,
      sizes_seen: sizesSeen,
      sizes_moved: sizesMoved,
      wholesale_moves: wholesale?.moves,
      wholesale_minutes: wholesale?.minutes,
      told: prediction,
    }),
  );
  await tx`
    insert into catalog_internal.live_rates as r (sku, alpha, beta, long_alpha, long_beta, short_alpha, short_beta, short_odds,
      prior_part, long_prior, short_prior, sizes_seen, sizes_moved, wholesale_moves, wholesale_minutes, told, line)
    select n.sku, n.alpha, n.beta, n.long_alpha, n.long_beta, n.short_alpha, n.short_beta, n.short_odds,
      n.prior_part, n.long_prior, n.short_prior, n.sizes_seen, n.sizes_moved, n.wholesale_moves, n.wholesale_minutes,
      n.told, catalog_internal.line_of(p.brand, p.model)
    from jsonb_to_recordset(${tx.json(rows as never)}) as n(
      sku text, alpha float8, beta float8, long_alpha real, long_beta real, short_alpha real,
      short_beta real, short_odds real, prior_part real, long_prior real, short_prior real, sizes_seen real, sizes_moved real,
      wholesale_moves real, wholesale_minutes real, told jsonb)
    -- By its key: a few rows are no reason to read all products, whatever the planner expects of them.
    left join lateral (select p.brand, p.model from catalog.products p where p.sku = n.sku offset 0) p on true
    order by n.sku
    on conflict (sku) do update set alpha = excluded.alpha, beta = excluded.beta,
      long_alpha = excluded.long_alpha, long_beta = excluded.long_beta,
      short_alpha = excluded.short_alpha, short_beta = excluded.short_beta, short_odds = excluded.short_odds,
      prior_part = excluded.prior_part, long_prior = excluded.long_prior, short_prior = excluded.short_prior,
      sizes_seen = excluded.sizes_seen,
      sizes_moved = excluded.sizes_moved, wholesale_moves = excluded.wholesale_moves, wholesale_minutes = excluded.wholesale_minutes,
      line = excluded.line, hazard = null, hint_hazard = null, told = excluded.told`;
}

/**
 * Forgets the hazards of refreshed SKUs that are no longer live: moves of their line, and hints, say nothing about
 * them.
 */
export async function forgetHazards(tx: Tx, skus: readonly string[]): Promise<void> {
  if (skus.length === 0) return;
  await tx`update catalog_internal.live_rates set hazard = null, hint_hazard = null, told = null where sku = any(${skus as string[]})`;
}

/** Removes refreshed SKUs from the list of those drawn at random. */
export async function forgetDrawn(tx: Tx, skus: readonly string[]): Promise<void> {
  if (skus.length === 0) return;
  await tx`delete from catalog_internal.random_looks where sku = any(${skus as string[]})`;
}
