export const READ = ['SELECT'];
const WATCH = ['DELETE', 'INSERT', 'SELECT', 'UPDATE'];
export type Role = 'catalog_reader' | 'catalog_watcher' | 'stranger';
export type Rights = Partial<Record<Role, readonly string[]>>;

/** Functions without arguments that nobody but the owner calls. */
const OWN = [
  'watch_added others_part lock_changes lock_new_skus history_is_written position_before_built add_history_chunks',
  'watch_changed present_lineage follow_lineage mend_sequences forget_with_skus missing_rights grant_rights clock_is_steady set_back_clock',
  'hints_are_free lock_hint_sources hints_came refreshes_are_free refreshes_came nothing_leaves',
  'warn_of_promises weigh_promises',
].flatMap((names) => names.split(' '));

/** Everything in the schema catalog. What is in the daemon's own schemas is nobody's, but for the functions below. */
export const DECIDED: Readonly<Record<string, Rights>> = {
  'schema catalog': { catalog_reader: ['USAGE'], catalog_watcher: ['USAGE'] },
  'schema catalog_internal': {},
  'schema catalog_queue': {},
  'table catalog.skus': { catalog_reader: READ },
  'table catalog.prices': { catalog_reader: READ },
  'table catalog.products': { catalog_reader: READ },
  'table catalog.price_history': { catalog_reader: READ },
  'table catalog.product_history': { catalog_reader: READ },
  'table catalog.watchlist': { catalog_reader: READ, catalog_watcher: WATCH },
  'view catalog.current_prices': { catalog_reader: READ },
  'view catalog.sku_trust': { catalog_reader: READ },
  'view catalog.sync_status': { catalog_reader: READ },
  'view catalog.delta_audit': { catalog_reader: READ },
  'view catalog.calibration': { catalog_reader: READ },
  'view catalog.hint_sources': { catalog_reader: READ },
  'view catalog.promises': { catalog_reader: READ },
  'function catalog.hint(text,text)': { catalog_watcher: ['EXECUTE'] },
  'function catalog.take_request(text)': { catalog_watcher: ['EXECUTE'] },
  'function catalog.refresh(text[])': { catalog_watcher: ['EXECUTE'] },
  'function catalog.refresh_now(text[],interval)': { catalog_watcher: ['EXECUTE'] },
  'function catalog.refresh_begin(text[],interval,text)': { catalog_watcher: ['EXECUTE'] },
  'function catalog.refresh_wait(jsonb)': { catalog_watcher: ['EXECUTE'] },
  'function catalog.refresh_end(jsonb)': { catalog_watcher: ['EXECUTE'] },
  'function catalog.changes(bigint,integer)': { catalog_reader: ['EXECUTE'] },
  'function catalog.changes_position()': { catalog_reader: ['EXECUTE'] },
  'function catalog.changes_oldest()': { catalog_reader: ['EXECUTE'] },
  'function catalog.lowest_prices(text,text,text,text,integer,boolean)': { catalog_reader: ['EXECUTE'] },
  'function catalog.movers(interval,integer)': { catalog_reader: ['EXECUTE'] },
  'function catalog.skus_past_target(integer)': { catalog_reader: ['EXECUTE'] },
  'function catalog.explain(text)': { catalog_reader: ['EXECUTE'] },
  // Called by the views as their reader; without USAGE on the schema nobody can name them.
  'function catalog_internal.catalog_state(catalog_internal.sync)': everyone('EXECUTE'),
  'function catalog_internal.present_ceiling(catalog_internal.pace)': everyone('EXECUTE'),
  'function catalog_internal.trust_terms()': everyone('EXECUTE'),
  'function catalog_internal.believable_until()': everyone('EXECUTE'),
  'function catalog_internal.seconds_ahead()': everyone('EXECUTE'),
  'function catalog_internal.lane_names()': everyone('EXECUTE'),
  'function catalog_internal.price_beliefs()': everyone('EXECUTE'),
  'function catalog_internal.cohort_of(text,boolean,boolean,boolean)': everyone('EXECUTE'),
  'function catalog_internal.p_right(boolean,boolean,boolean,double precision,catalog_internal.live_rates,catalog_internal.held_beliefs)':
    everyone('EXECUTE'),
  'function catalog_internal.promise_capacity()': everyone('EXECUTE'),
  'function catalog_internal.last_day(integer[],timestamp with time zone)': everyone('EXECUTE'),
  'function catalog_internal.promised_interval(double precision)': {},
  'function catalog_internal.promises_that_fit(text[],double precision[],real[])': {},
  'function catalog_internal.counted(integer[],integer,integer)': {},
  'function catalog_internal.lane_of(text)': {},
  'function catalog_internal.line_of(text,text)': {},
  'function catalog_internal.snapshot_target(catalog_internal.settings)': {},
  'function catalog_internal.delta_late_after(catalog_internal.settings)': {},
  'function catalog_internal.mark_due(text[],text,boolean)': {},
  'function catalog_internal.hints_at(text[])': {},
  'function catalog_internal.refresh_skus(text[])': {},
  'function catalog_internal.take_refreshes(integer)': {},
  'function catalog_internal.ask_refresh(text[],boolean)': {},
  'function catalog_internal.pay_refreshes(double precision,integer)': {},
  'function catalog_internal.past_moves(text,timestamp with time zone)': {},
  'function catalog_internal.others_sent(interval)': {},
  'function catalog_internal.count_other(timestamp with time zone)': {},
  'function catalog_internal.position_before(timestamp with time zone)': {},
  'function catalog_internal.drop_history_chunk(double precision)': {},
  'function catalog_internal.read_watchlist(boolean,integer)': {},
  'function catalog_internal.watched_to_ledger(integer)': {},
  'function catalog_internal.recount_others(timestamp with time zone,interval)': {},
  'function catalog_internal.redate_skus(interval,text,integer)': {},
  'function catalog_internal.redate_due(interval,text,integer)': {},
  'function catalog_internal.redate_history(interval)': {},
  'function catalog_internal.clock_high_water()': {},
  'function catalog_internal.happened(timestamp with time zone,timestamp with time zone,interval)': {},
  'function catalog_internal.awaited(timestamp with time zone,timestamp with time zone,interval)': {},
  ...Object.fromEntries(OWN.map((name) => [`function catalog_internal.${name}()`, {}])),
};

function everyone(right: string): Rights {
  return { catalog_reader: [right], catalog_watcher: [right], stranger: [right] };
}
