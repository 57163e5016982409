import { faultsOf, type Mutant } from './mutant.ts';

const FUNCTIONS = 'drizzle/0009_functions_are_our_own.sql';
const DATABASES = 'drizzle/0016_strange_databases.sql';
const PARAMETERS = 'drizzle/0042_parameters_and_corrections.sql';
const CHANGES = 'drizzle/0030_whole_changes.sql';
const STATEMENT_TIME = 'drizzle/0058_statement_time.sql';
const MOMENT = 'drizzle/0068_moment_of_a_query.sql';
const IMPLAUSIBLE = 'drizzle/0021_implausible.sql';
const SCOPE = 'drizzle/0029_scope.sql';
const BY_KEY = 'drizzle/0035_looked_up_by_key.sql';
const P_RIGHT = 'drizzle/0020_p_right.sql';
const DUE = ['test/store/due.pg.test.ts', 'test/store/due-model.pg.test.ts'];
const TRUST = [
  'test/store/trust-corners.pg.test.ts',
  'test/store/trust.pg.test.ts',
  'test/store/unlisted.pg.test.ts',
  'test/store/schema.pg.test.ts',
];

/** Faults in views and functions, planted in the migration that last defines them (`placed`). */
export const OBJECTS: readonly Mutant[] = [
  ...faultsOf(
    IMPLAUSIBLE,
    [...DUE, 'test/store/rank.pg.test.ts'],
    [
      'mark_due: a worse mark takes a better lane',
      'THEN least(d.lane, excluded.lane) ELSE',
      'THEN greatest(d.lane, excluded.lane) ELSE',
    ],
    [
      'mark_due: a mark is settled by an answer under way',
      'generation = d.generation + 1,\n      held_until',
      'generation = d.generation,\n      held_until',
    ],
    [
      'mark_due: a claim ends with a mark',
      'CASE WHEN d.claim IS NULL AND d.deferrals = 0',
      'CASE WHEN d.deferrals = 0',
    ],
    [
      'mark_due: null takes the live flag away',
      'live = coalesce(counts_as_live, d.live)',
      'live = coalesce(counts_as_live, false)',
    ],
  ),
  ...faultsOf(
    BY_KEY,
    ['test/store/live-order.pg.test.ts'],
    [
      'mark_due: what deferrals have taught outlives a report of what the SKU is',
      'live_left = CASE WHEN counts_as_live IS NULL THEN d.live_left ELSE 0 END',
      'live_left = d.live_left',
    ],
  ),
  ...faultsOf(
    BY_KEY,
    [...DUE, 'test/store/rank.pg.test.ts', 'test/store/watchlist.pg.test.ts'],
    [
      'mark_due: a SKU that is watched no longer keeps its rank',
      'ranked := ranked || ARRAY(',
      'ranked := ARRAY(',
    ],
  ),
  ...faultsOf(
    FUNCTIONS,
    ['test/store/settings.pg.test.ts'],
    [
      'delta_late_after: half an hour at most',
      'SELECT greatest(1800, 2 * s.delta_interval)',
      'SELECT least(1800, 2 * s.delta_interval)',
    ],
    [
      'snapshot_target: the later of the two',
      'least(s.sweep_interval, s.metadata_interval)',
      'greatest(s.sweep_interval, s.metadata_interval)',
    ],
  ),
  ...faultsOf(
    IMPLAUSIBLE,
    ['test/store/watchlist.pg.test.ts'],
    ['lane_of: a watched SKU is not urgent', "WHEN 'watched' THEN 1 ", "WHEN 'watched' THEN 2 "],
  ),
  ...faultsOf(
    DATABASES,
    ['test/store/questions.pg.test.ts', 'test/store/changes.pg.test.ts'],
    [
      'movers: the last price first',
      '(array_agg(h.old_price ORDER BY h.id))[1]',
      '(array_agg(h.old_price ORDER BY h.id DESC))[1]',
    ],
    [
      'movers: a price that is back has moved',
      'WHERE m.old_price <> m.new_price',
      'WHERE m.old_price <> m.new_price OR true',
    ],
  ),
  ...faultsOf(
    PARAMETERS,
    ['test/store/questions.pg.test.ts', 'test/store/changes.pg.test.ts'],
    [
      'movers: prices of other sizes count',
      "c.field = 'size_map_size_type' AND c.old_value IS NOT NULL AND c.observed_at >= h.observed_at",
      "c.field = 'size_map_size_type' AND c.old_value IS NOT NULL AND c.observed_at < h.observed_at",
    ],
    [
      'movers: a size_type that is known for the first time is a correction',
      'AND c.old_value IS NOT NULL AND c.observed_at >=',
      'AND c.observed_at >=',
    ],
  ),
  ...faultsOf(
    P_RIGHT,
    ['test/store/questions.pg.test.ts'],
    [
      'lowest_prices: prices that are not actionable',
      'AND (t.size_actionable OR NOT only_actionable)',
      'AND (t.size_actionable OR only_actionable)',
    ],
    ['lowest_prices: the dearest first', 'ORDER BY p.price, p.sku', 'ORDER BY p.price DESC, p.sku'],
  ),
  ...faultsOf(
    P_RIGHT,
    ['test/store/questions.pg.test.ts', 'test/store/trust.pg.test.ts'],
    [
      'trust: a size without a price is actionable',
      't.size_actionable AND p.price IS NOT NULL AS actionable',
      't.size_actionable AS actionable',
    ],
  ),
  ...faultsOf(
    STATEMENT_TIME,
    ['test/store/live-order.pg.test.ts', 'test/store/live.pg.test.ts', 'test/sync/incident.pg.test.ts'],
    [
      'past_moves: sizes count, not refreshes',
      'count(DISTINCT h.observed_at)::integer',
      'count(h.observed_at)::integer',
    ],
    [
      'past_moves: a past of years',
      "least(statement_timestamp() - first_priced_at, interval '3 days')",
      '(statement_timestamp() - first_priced_at)',
    ],
  ),
  ...faultsOf('drizzle/0060_reported_in_turn.sql', TRUST, [
    'trust: an owed price is actionable',
    "> s.asked_at ELSE k.reprice_due END THEN 'owed'",
    "> s.asked_at ELSE false END THEN 'owed'",
  ]),
  ...faultsOf(
    IMPLAUSIBLE,
    TRUST,
    [
      'trust: a pending price is actionable',
      "WHEN s.state <> 'priced' THEN s.state",
      "WHEN s.state = 'removed' THEN s.state",
    ],
    ['trust: a price past its target is actionable', 'ELSE b.past_target OR b.stale\n', 'ELSE b.stale\n'],
    [
      'trust: an unsure meaning is actionable',
      "WHEN k.owed AND d.reason = 'metadata' THEN 'size_type'",
      "WHEN k.owed AND false THEN 'size_type'",
    ],
    [
      'trust: a live price is in doubt where deltas are late',
      "WHEN s.price_source IS DISTINCT FROM 'live'\n                AND",
      'WHEN s.sku IS NOT NULL\n                AND',
    ],
    [
      'trust: a deferred SKU is in error',
      "WHEN d.deferrals > 0 THEN 'deferred'\n",
      "WHEN d.deferrals > 1 THEN 'deferred'\n",
    ],
  ),
  ...faultsOf(
    'drizzle/0004_reports_fail.sql',
    TRUST,
    [
      'catalog_state: a broken chain is stale at once',
      'WHEN s.chain_broken_at IS NOT NULL AND s.manifest_refused IS NOT NULL',
      'WHEN s.chain_broken_at IS NOT NULL',
    ],
    [
      'catalog_state: a token that moves proves nothing',
      'greatest(s.snapshot_generated_at, s.snapshot_moved_at)\n',
      '(s.snapshot_generated_at)\n',
    ],
  ),
  ...faultsOf(
    'drizzle/0055_one_division.sql',
    ['test/store/thresholds.pg.test.ts'],
    [
      'sends_per_window: a hair less than a whole number is one less',
      'most * ms / (ms + least(500, ms / 20))',
      'most * (ms / (ms + least(500, ms / 20)))',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    ['test/store/due-floors.pg.test.ts'],
    [
      'idle: what is due since ever has no age',
      "min(greatest(oldest.due_at, 'epoch'))",
      'min(oldest.due_at)',
    ],
  ),
  ...faultsOf(
    MOMENT,
    ['test/store/thresholds.pg.test.ts'],
    [
      'delta_is_late: a time to come is in time',
      "AND clock_timestamp() + interval '1 minute';\nEND;",
      "AND 'infinity';\nEND;",
    ],
    [
      'delta_is_late: never by its age',
      'NOT BETWEEN clock_timestamp() - make_interval(secs => catalog_internal.delta_late_after(g))',
      "NOT BETWEEN '-infinity'",
    ],
  ),
  ...faultsOf(
    'drizzle/0045_one_rule_once.sql',
    [
      'test/store/trust-corners.pg.test.ts',
      'test/store/schema.pg.test.ts',
      'test/store/catalog-counts.pg.test.ts',
      'test/store/counts-corners.pg.test.ts',
    ],
    ['is_waiting: deferred SKUs are due', '(d.deferrals > 0 OR d.failures = 0', '(d.failures = 0'],
  ),
  ...faultsOf('drizzle/0026_pause.sql', TRUST, [
    'trust_terms: a fault of the catalog is a late delta',
    'WHEN s.catalog_fault IS NULL AND catalog_internal',
    'WHEN catalog_internal',
  ]),
  ...faultsOf(
    MOMENT,
    [
      'test/store/trust-corners.pg.test.ts',
      'test/store/schema.pg.test.ts',
      'test/store/catalog-counts.pg.test.ts',
    ],
    [
      'sync_status: the oldest is the newest',
      'min(due_at) FILTER (WHERE due_at <= (SELECT moment FROM m) AND',
      'max(due_at) FILTER (WHERE due_at <= (SELECT moment FROM m) AND',
    ],
  ),
  ...faultsOf(
    CHANGES,
    [
      'test/store/trust-corners.pg.test.ts',
      'test/store/changes.pg.test.ts',
      'test/store/changes-model.pg.test.ts',
      'test/store/history-chunks.pg.test.ts',
    ],
    ['changes: the change at the position comes again', 'WHERE a.id > start ORDER BY a.id', 'ORDER BY a.id'],
    [
      'changes: more than are asked for are left out',
      'SELECT min(b.last_id) FROM (',
      'SELECT min(b.last_id) - 1 FROM (',
    ],
    ['changes: what came before a restart comes again', '    start := bound;\n', ''],
    ['changes: prices come before products', 'ORDER BY a.id LIMIT left_over', 'LIMIT left_over'],
    ['changes: a position whose changes are gone is taken', 'IF after < oldest THEN', 'IF after < 0 THEN'],
    ['changes: the oldest position is refused', 'IF after < oldest THEN', 'IF after <= oldest THEN'],
    [
      'changes: a position of another history is taken',
      'ELSIF after > drawn THEN',
      'ELSIF after > drawn + 1000000 THEN',
    ],
    ['changes: none are asked for', 'most IS NULL OR most < 1 THEN', 'most IS NULL OR most < 0 THEN'],
  ),
  ...faultsOf(
    SCOPE,
    [...DUE, 'test/store/rank.pg.test.ts'],
    [
      'mark_due: a due SKU loses its reason',
      "(d.reason = 'changed' OR o.lane <= excluded.lane)",
      "(d.reason = 'changed' OR o.lane < excluded.lane)",
    ],
    [
      'mark_due: a due SKU loses its place by age',
      'THEN least(d.due_at, excluded.due_at) ELSE d.due_at END',
      'THEN excluded.due_at ELSE d.due_at END',
    ],
  ),
  ...faultsOf(
    SCOPE,
    ['test/store/questions.pg.test.ts'],
    ['skus_past_target: the newest first', 'ORDER BY t.priced_at LIMIT', 'ORDER BY t.priced_at DESC LIMIT'],
  ),
  ...faultsOf(
    MOMENT,
    TRUST,
    [
      'trust: an incident doubts nothing',
      "WHEN t.incident AND s.priced_at < t.moment - t.live_target THEN 'incident'",
      "WHEN t.incident AND false THEN 'incident'",
    ],
    [
      'trust: young prices are in doubt where deltas are late',
      'OR s.priced_at < t.moment - t.live_target) THEN t.catalog_doubt',
      'OR true) THEN t.catalog_doubt',
    ],
    [
      'trust: metadata that is due makes prices stale',
      "coalesce(coalesce(d.outside_due_at, d.due_at) <= t.moment AND d.reason NOT IN ('metadata', 'again'), false) AS reprice_due",
      'coalesce(coalesce(d.outside_due_at, d.due_at) <= t.moment, false) AS reprice_due',
    ],
  ),
];
