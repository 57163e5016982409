import { faultsOf, type Mutant } from './mutant.ts';

const COSTS = 'drizzle/0075_cost_of_many.sql';

/** Faults that make repeated reads grow with the catalog instead of with what changed. */
export const COSTS_OF_MANY: readonly Mutant[] = [
  ...faultsOf(
    'src/store/statistics.ts',
    ['test/sync/statistics.pg.test.ts'],
    [
      'statistics: a table that was filled is taken for empty for as long as autovacuum is off',
      'if (names.length > 0) await',
      'if (names.length < 0) await',
    ],
    ['statistics: tables are analyzed each minute', 'greatest(c.reltuples, ${', 'least(c.reltuples, ${'],
    ['statistics: who holds a table holds up maintenance', 'analyze (skip_locked)', 'analyze'],
    ['statistics: a table that had no page is analyzed', ' and c.relpages > 0', ''],
  ),
  ...faultsOf(
    'src/store/ledger/lost-rows.ts',
    ['test/sync/statistics.pg.test.ts'],
    [
      'plans: lost rows are searched for in the whole ledger, for each SKU',
      'd.sku = p.sku offset 0)',
      'd.sku = p.sku)',
    ],
  ),
  ...faultsOf(
    'src/store/sellers/hints.ts',
    ['test/store/few-rows-many-pages.pg.test.ts'],
    [
      'plans: SKUs are compared with each hint that waits',
      'where s.sku = q.sku offset 0) s on true',
      'where s.sku = q.sku) s on true',
    ],
  ),
  ...faultsOf(
    'drizzle/0086_plans_without_statistics.sql',
    ['test/store/few-rows-many-pages.pg.test.ts'],
    [
      'plans: a list of few rows on many pages is read for each SKU',
      'read_watchlist(everything boolean, most integer) RETURNS void\nLANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off',
      'read_watchlist(everything boolean, most integer) RETURNS void\nLANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan',
    ],
    [
      'plans: known SKUs are compared with each that is watched',
      '(SELECT FROM catalog.skus s WHERE s.sku = o.sku OFFSET 0);',
      '(SELECT FROM catalog.skus s WHERE s.sku = o.sku);',
    ],
    [
      'plans: metadata is compared with each SKU that is sorted',
      '(SELECT p.brand, p.model, p.category FROM catalog.products p WHERE p.sku = l.sku OFFSET 0)',
      '(SELECT p.brand, p.model, p.category FROM catalog.products p WHERE p.sku = l.sku)',
    ],
    [
      'plans: the ledger is compared with each SKU that a seller asks for',
      'd.outside_due_at IS NULL OFFSET 0) d',
      'd.outside_due_at IS NULL) d',
    ],
  ),
  ...faultsOf(
    'src/store/sellers/hints.ts',
    ['test/store/few-rows-many-pages.pg.test.ts'],
    [
      'plans: tables of few rows on many pages are read for each hint',
      "set_config('enable_seqscan', 'off', true)",
      "set_config('enable_seqscan', 'on', true)",
    ],
  ),
  ...faultsOf(
    'src/store/answer/seller-doubts.ts',
    ['test/status/many-doubts.pg.test.ts'],
    ['doubts: all are read each time', 'const COUNTED_AT_ONCE = 1000;', 'const COUNTED_AT_ONCE = 1_000_000;'],
    [
      'doubts: all prices are read for some of them',
      'p.price is not null offset 0))',
      'p.price is not null))',
    ],
    [
      'doubts: no more than are read at once are told of',
      'if (areAll || counted === null) return read;',
      'if (areAll || counted !== null) return read;',
    ],
  ),
  ...faultsOf(
    'src/daemon/in-flight.ts',
    ['test/lib/in-flight.test.ts'],
    ['readings: each asks for itself', 'current === null || now() - current.begunAt >= freshMs', 'true'],
    ['readings: one that is lost is waited for', ' || now() - current.begunAt >= freshMs', ''],
    [
      'readings: who asks gets one of before',
      'next ??= afterThis(current.reading);\n    return next;',
      'return current.reading;',
    ],
    ['readings: one that was lost ends another', 'if (current === mine) current = null;', 'current = null;'],
  ),
  ...faultsOf(
    'src/status/facts.ts',
    ['test/daemon/readings.pg.test.ts'],
    ['facts: statements that nobody waits for go on', '}, true)`.execute(),', '}, true)`,'],
  ),
  ...faultsOf(
    'src/sync/maintenance.ts',
    ['test/sync/maintenance-cost.pg.test.ts'],
    [
      'maintenance: a SKU that cannot be forgotten is told of once',
      'done.forgotten < AT_ONCE && done.rejected === null',
      'done.forgotten < AT_ONCE',
    ],
    [
      'maintenance: all SKUs are read each minute',
      'const FORGETTING_EVERY_MS = 600_000;',
      'const FORGETTING_EVERY_MS = 0;',
    ],
    [
      'maintenance: turns for metadata are read each minute',
      'const TURNS_EVERY_MS = 3_600_000;',
      'const TURNS_EVERY_MS = 0;',
    ],
    ['maintenance: history is read from its beginning', 'memory.prunedMembers = pruned;', ''],
  ),
  ...faultsOf(
    'src/store/history/retention.ts',
    ['test/sync/maintenance-cost.pg.test.ts'],
    [
      'retention: what other columns have left is not pruned',
      'unsteady.every((column) => pruned.unsteady.includes(column)) ? pruned.upTo',
      'true ? pruned.upTo',
    ],
    [
      'retention: at an earlier position nothing is pruned',
      'case when last_value < ${after}::bigint then 0 else ${after}::bigint end',
      '${after}::bigint',
    ],
    [
      'retention: what a limit has left is not pruned',
      'case when g.dropped < ${limit} then up_to else g.last end',
      'up_to',
    ],
  ),
  ...faultsOf(
    COSTS,
    ['test/store/promises-many.pg.test.ts'],
    [
      'warn_of_promises: all are weighed for a promise that does not change',
      "TG_OP <> 'UPDATE' OR NOT EXISTS",
      "TG_OP <> 'NOTHING' OR NOT EXISTS",
    ],
    [
      'warn_of_promises: all are weighed each time',
      'fits := n.live <= c.live AND n.others <= c.others AND coalesce(n.each, true);',
      'fits := false;',
    ],
    [
      'warn_of_promises: a few always fit',
      'fits := n.live <= c.live AND n.others <= c.others AND coalesce(n.each, true);',
      'fits := true;',
    ],
    ['warn_of_promises: what is remembered counts for ever', 'BETWEEN 0 AND 10 THEN', '>= 0 THEN'],
  ),
  ...faultsOf(
    COSTS,
    ['test/sync/maintenance-cost.pg.test.ts'],
    [
      'sequences: the ledger is read each minute',
      `CASE WHEN (SELECT seen_claim FROM catalog_internal.sync) > coalesce(pg_sequence_last_value(''catalog_internal.claim_numbers''), 0)
          THEN (SELECT max(d.asked_claim) FROM catalog_internal.due d) END)'`,
      `(SELECT max(d.asked_claim) FROM catalog_internal.due d
          WHERE (SELECT seen_claim FROM catalog_internal.sync) > coalesce(pg_sequence_last_value(''catalog_internal.claim_numbers''), 0)))'`,
    ],
  ),
  ...faultsOf(
    COSTS,
    ['test/store/sequences.pg.test.ts'],
    [
      'sequences: what was dropped is forgotten',
      'IF newest >= upcoming THEN',
      "IF newest >= upcoming AND drawn.query NOT LIKE '%pg_inherits%' THEN",
    ],
    ['sequences: one that is not behind is set', 'IF newest >= upcoming THEN', 'IF newest > 0 THEN'],
    [
      'sequences: a look at those that are not behind waits for writers',
      'EXECUTE drawn.query INTO newest;',
      'EXECUTE drawn.query INTO newest; PERFORM catalog_internal.lock_changes();',
    ],
    [
      'sequences: those of claims stay behind',
      'THEN (SELECT max(d.asked_claim) FROM catalog_internal.due d) END)',
      'THEN (SELECT max(d.asked_claim) FROM catalog_internal.due d) END) - 1',
    ],
    [
      'sequences: claims of answers count for nothing',
      '(SELECT max(d.asked_claim) FROM catalog_internal.due d',
      '(SELECT max(d.claim) FROM catalog_internal.due d',
    ],
  ),
];
