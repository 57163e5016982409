/** The result of catalog.explain: times in ISO 8601, shares and probabilities in [0, 1]. */
export interface Explained {
  readonly sku: string;
  readonly at: string;
  readonly state: string;
  readonly price_source: string | null;
  readonly in_manifest: boolean;
  /** Null: MIRROR_SCOPE is catalog. The first matching rule decides. */
  readonly scope: {
    readonly in_scope: boolean;
    /** The SKU is asked for once, because a rule needs its metadata. */
    readonly asked_for_metadata: boolean;
    readonly rules: readonly { readonly kind: string; readonly value: string; readonly include: boolean }[];
  } | null;
  readonly product: {
    readonly name: string | null;
    readonly brand: string | null;
    readonly model: string | null;
    readonly size_type: string | null;
    readonly refreshed_at: string | null;
  } | null;
  readonly answer: {
    readonly asked_at: string | null;
    readonly because: string | null;
    readonly priced_at: string | null;
    readonly first_priced_at: string | null;
    readonly age_seconds: number | null;
  };
  readonly report: {
    readonly reported_at: string | null;
    readonly removed_at: string | null;
    readonly asked_since: boolean;
    /** When it is asked once more, because the answer had nothing new; null: it is not. */
    readonly again_at: string | null;
    /** How many of its changes the delta has left out since it last reported one. */
    readonly missed_moves: number;
  };
  readonly trust: {
    readonly p_right: number | null;
    readonly size_p_right: number | null;
    readonly confidence: number;
    readonly actionable: boolean;
    readonly doubt: string | null;
    /**
     * A price that waits for a second answer: what is odd about it (null: many SKUs have moved), since which answer,
     * and the prices before it.
     */
    readonly doubted: {
      readonly oddity: string | null;
      readonly since: string;
      readonly before: Readonly<Record<string, number>>;
    } | null;
    readonly stale: boolean;
    readonly past_target: boolean;
    readonly target_seconds: number | null;
  };
  readonly belief: {
    readonly cohort: string;
    readonly minutes_between_changes: number | null;
    readonly own_rate: boolean;
    /**
     * The probability that it has moved with its line (brand and model) since its last answer; null: its line does not
     * move.
     */
    readonly moved_with_line: number | null;
    /** Who has hinted at it since its last answer, and how often each of them is right (`moved`); null: nobody. */
    readonly hinted_by:
      | readonly { readonly source: string; readonly at: string; readonly moved: number }[]
      | null;
    readonly sizes_that_move: number;
    readonly looks: number | null;
    readonly right_share: number | null;
    readonly claimed_share: number | null;
  };
  readonly next: {
    readonly look_at: string | null;
    readonly due_at: string | null;
    readonly reason: string | null;
    readonly is_due: boolean;
    readonly lane: string | null;
    readonly under_way: boolean;
    readonly held_until: string | null;
    readonly deferrals: number;
    readonly failures: number;
    /** Why its last answer was an error (in the words of errorText); null: it was none, or of an older daemon. */
    readonly last_error: string | null;
    readonly watched: number | null;
  };
  /** How old its price may get according to catalog.watchlist.max_age; null: nothing is promised. */
  readonly promise: {
    readonly max_age_seconds: number;
    readonly feasible: boolean;
    readonly kept_share: number | null;
    readonly because: string | null;
  } | null;
  readonly prices: readonly {
    readonly size: string;
    readonly price: number | null;
    readonly since: string;
    readonly actionable: boolean;
    readonly before: { readonly price: number | null; readonly until: string } | null;
  }[];
}
