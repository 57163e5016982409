-- Of those of these SKUs that have been priced and hold no price any longer: the prices that vanished last, by size, and
-- how many minutes before then. PL/pgSQL plans the reading of the history when it is reached: to plan it, Postgres opens
-- and locks every partition and index, and most answers have no such SKU. One plan for all calls: none is for a part of
-- the history. STABLE, so that it sees what the statement sees that it stands in.
CREATE OR REPLACE FUNCTION catalog_internal.vanished_prices(skus text[], asked_at timestamptz)
RETURNS TABLE (sku text, vanished jsonb, minutes double precision)
LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  gone text[];
BEGIN
  gone := ARRAY(
    SELECT s.sku FROM catalog.skus s
    -- With OFFSET 0 each is looked up by its key, and not all prices are read to be joined.
    CROSS JOIN LATERAL (SELECT WHERE NOT EXISTS (SELECT FROM catalog.prices p WHERE p.sku = s.sku AND p.price IS NOT NULL) OFFSET 0) unpriced
    WHERE s.sku = ANY (skus) AND s.first_priced_at IS NOT NULL
  );
  IF cardinality(gone) = 0 THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT g.sku, jsonb_object_agg(h.size, h.old_price), (extract(epoch FROM vanished_prices.asked_at - max(h.observed_at)) / 60)::float8
    FROM unnest(gone) AS g(sku)
    CROSS JOIN LATERAL (
      SELECT h.size, h.old_price, h.new_price, h.observed_at, h.observed_at = first_value(h.observed_at) OVER (ORDER BY h.id DESC) AS is_last
      FROM catalog.price_history h WHERE h.sku = g.sku ORDER BY h.id DESC LIMIT 100
    ) h
    WHERE h.is_last AND h.new_price IS NULL AND h.old_price IS NOT NULL
    GROUP BY g.sku;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.vanished_prices(text[], timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- The last prices of sizes, four at most and the newest first, by each SKU's last thousand moves: a wrong one may have
-- come and gone between. No row of a size that had none. STRICT: without sizes it is not called, and so no partition of
-- the history is opened, of which all would be to plan this.
CREATE OR REPLACE FUNCTION catalog_internal.last_prices(skus text[], sizes text[]) RETURNS TABLE (sku text, size text, prices integer[])
LANGUAGE plpgsql STABLE STRICT ROWS 10 SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT n.sku, n.size, last.prices
    FROM unnest(skus, sizes) AS n(sku, size)
    CROSS JOIN LATERAL (
      SELECT array_agg(l.old_price) AS prices FROM (
        SELECT h.old_price FROM (
          SELECT h.size, h.old_price FROM catalog.price_history h WHERE h.sku = n.sku ORDER BY h.id DESC LIMIT 1000
        ) h WHERE h.size = n.size AND h.old_price IS NOT NULL LIMIT 4
      ) l
    ) last
    WHERE last.prices IS NOT NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.last_prices(text[], text[]) FROM PUBLIC;
--> statement-breakpoint
-- Those of these SKUs that a refresh has seen moving since sync.built_after, that of `refreshed_at` apart. In PL/pgSQL, which
-- plans it where it is reached, and for the position of each call: so no older partition of the history is opened, nor locked.
CREATE OR REPLACE FUNCTION catalog_internal.moved_since_built(skus text[], refreshed_at timestamptz) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  built timestamptz;
  start bigint := catalog_internal.position_before_built();
BEGIN
  SELECT date_trunc('milliseconds', y.built_after) INTO built FROM catalog_internal.sync y;
  IF built IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT a.sku FROM unnest(skus) AS a(sku)
    -- With LIMIT each is looked up by its key, and not all moves since then are read to be joined.
    CROSS JOIN LATERAL (
      SELECT FROM catalog.price_history h
      WHERE h.sku = a.sku AND h.observed_at >= built AND h.id > start AND h.observed_at IS DISTINCT FROM moved_since_built.refreshed_at LIMIT 1
    ) moved;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.moved_since_built(text[], timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- catalog_internal.past_moves for few SKUs. PL/pgSQL plans it for the position of each call, so no older partition of the
-- history is locked; for many SKUs that takes longer than to read.
CREATE OR REPLACE FUNCTION catalog_internal.past_moves_planned(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  since timestamptz := statement_timestamp() - interval '3 days';
  start bigint := catalog_internal.position_before(since);
BEGIN
  SELECT count(DISTINCT h.observed_at) INTO moves
  FROM catalog.price_history h WHERE h.sku = of_sku AND h.observed_at > since AND h.id > start;
  minutes := CASE WHEN first_priced_at IS NULL THEN 0
    ELSE extract(epoch FROM statement_timestamp() - greatest(first_priced_at, since)) / 60 END;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.past_moves_planned(text, timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- In PL/pgSQL, which plans it for the time that each call asks for: so no partition of the history from before that is opened,
-- nor locked, and the planner knows how few rows there are. With the owner's rights, as what says where that time begins is
-- nobody's to read.
CREATE OR REPLACE FUNCTION catalog.movers(within interval DEFAULT '1 hour', most integer DEFAULT 100)
RETURNS TABLE (sku text, size text, old_price integer, new_price integer, change integer, change_ratio double precision,
  moves bigint, last_moved_at timestamptz, name text, brand text, model text)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
  since timestamptz := catalog_internal.moment() - within;
  start bigint := catalog_internal.position_before(since);
BEGIN
  RETURN QUERY
    SELECT m.sku, m.size, m.old_price, m.new_price, m.new_price - m.old_price,
           m.new_price::float8 / nullif(m.old_price, 0) - 1, m.moves, m.last_moved_at, pr.name, pr.brand, pr.model
    FROM (
      SELECT h.sku, h.size, count(*) AS moves, max(h.observed_at) AS last_moved_at,
             (array_agg(h.old_price ORDER BY h.id))[1] AS old_price, (array_agg(h.new_price ORDER BY h.id DESC))[1] AS new_price
      FROM catalog.price_history h
      WHERE h.observed_at > since AND h.id > start
        -- Up to a correction of what the sizes mean, the prices were of other sizes. What they mean being known
        -- for the first time corrects nothing.
        AND NOT EXISTS (
          SELECT FROM catalog.product_history c
          WHERE c.sku = h.sku AND c.field = 'size_map_size_type' AND c.old_value IS NOT NULL AND c.observed_at >= h.observed_at
        )
      GROUP BY h.sku, h.size
    ) m
    LEFT JOIN catalog.products pr ON pr.sku = m.sku
    WHERE m.old_price <> m.new_price
    ORDER BY abs(m.new_price::float8 / nullif(m.old_price, 0) - 1) DESC NULLS FIRST, m.sku, m.size
    LIMIT most;
END
$$;

REVOKE ALL ON FUNCTION catalog.movers(interval, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.movers(interval, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.movers(interval, integer) IS 'What moved within a time (one hour): sizes by the relative change from the price before it to the newest, largest first. Sizes that only appeared or went are not in it, nor moves up to a correction of size_type: sizes meant something else then. Nor does it say whether to act on them: join catalog.current_prices.';
--> statement-breakpoint
-- Reads first and judges then: from the reading on nothing can be dropped until the transaction ends, and what was
-- dropped before is said by a sequence, which is the same in every snapshot.
-- Planned for each position: one plan for all of them opens and locks every partition, also those that everybody has read.
CREATE OR REPLACE FUNCTION catalog.changes(after bigint, most integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
  first bigint;
  start bigint;
  until bigint;
  bound bigint;
  ending bigint;
  here bigint;
  found integer;
  left_over integer := most;
  oldest bigint;
  drawn bigint;
  resumed bigint;
BEGIN
  IF after IS NULL OR most IS NULL OR most < 1 THEN
    RAISE EXCEPTION 'catalog.changes needs a position and a number of changes from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  first := catalog_internal.id_before(after);
  start := first;
  -- Up to here there are as many as are asked for, in one of the tables alone. A batch is read whole, so no more of them than that are.
  SELECT least(
    (SELECT h.id FROM catalog.price_history h WHERE h.id > start ORDER BY h.id OFFSET most - 1 LIMIT 1),
    (SELECT h.id FROM catalog.product_history h WHERE h.id > start ORDER BY h.id OFFSET most - 1 LIMIT 1),
    (SELECT min(b.last_id) FROM (
       SELECT b.last_id, sum(b.last_id - greatest(b.id - 1, start)) OVER (ORDER BY b.last_id) AS changes
       FROM catalog_internal.change_batches b WHERE b.last_id > start ORDER BY b.last_id LIMIT most
     ) b WHERE b.changes >= most)) INTO until;
  -- Usually one: ids with one distance to their positions.
  FOR bound, here IN
    SELECT coalesce(lead(s.first_id) OVER (ORDER BY s.first_id), 9223372036854775807) - 1, s.shift
    FROM (SELECT 0::bigint AS first_id, 0::bigint AS shift UNION ALL SELECT s.first_id, s.shift FROM catalog_internal.position_shifts s) s ORDER BY s.first_id
  LOOP
    CONTINUE WHEN bound <= start;
    -- Batches do not overlap: the last that is read is the first to end there or later. By this its end has two bounds, and
    -- an index finds them; by the end of one and the beginning of another all before or all behind would be read.
    SELECT min(b.last_id) INTO ending FROM catalog_internal.change_batches b WHERE b.last_id >= least(until, bound);
    RETURN QUERY
      SELECT a.id + here, a.kind, a.sku, a.size, a.old_price, a.new_price, a.field, a.old_value, a.new_value, a.meaning_changed, a.observed_at FROM (
        SELECT h.id, 'price', h.sku, h.size, h.old_price, h.new_price, NULL::text, NULL::text, NULL::text, h.size_type_changed, h.observed_at
        FROM catalog.price_history h WHERE h.id > start AND h.id <= least(until, bound)
        UNION ALL
        SELECT h.id, 'product', h.sku, NULL, NULL, NULL, h.field, h.old_value, h.new_value,
          h.field = 'size_map_size_type' AND h.old_value IS NOT NULL, h.observed_at
        FROM catalog.product_history h WHERE h.id > start AND h.id <= least(until, bound)
        UNION ALL
        SELECT b.id + (s.n - 1) * cardinality(b.fields) + f.n - 1, 'sku', s.sku, NULL, NULL, NULL, f.field, f.old_value, f.new_value, false, b.observed_at
        FROM catalog_internal.change_batches b
        CROSS JOIN LATERAL unnest(b.skus) WITH ORDINALITY AS s(sku, n)
        CROSS JOIN LATERAL unnest(b.fields, b.old_values, b.new_values) WITH ORDINALITY AS f(field, old_value, new_value, n)
        WHERE b.kind = 'sku' AND b.last_id > start AND b.last_id <= coalesce(ending, 9223372036854775807) AND b.id <= least(until, bound)
        UNION ALL
        SELECT b.id + e.n - 1, b.kind, e.sku, e.size, NULL, e.price, e.field, NULL, e.new_value, false, b.observed_at
        FROM catalog_internal.change_batches b
        CROSS JOIN LATERAL unnest(b.skus, b.sizes, b.prices, b.fields, b.new_values) WITH ORDINALITY AS e(sku, size, price, field, new_value, n)
        WHERE b.kind <> 'sku' AND b.last_id > start AND b.last_id <= coalesce(ending, 9223372036854775807) AND b.id <= least(until, bound)
      ) a(id, kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed, observed_at)
      WHERE a.id > start ORDER BY a.id LIMIT left_over;
    GET DIAGNOSTICS found = ROW_COUNT;
    left_over := left_over - found;
    EXIT WHEN left_over <= 0 OR until <= bound;
    start := bound;
  END LOOP;
  oldest := catalog_internal.position_of(catalog_internal.dropped_to(first));
  -- The end of a gap is given out before a position behind it is drawn (changes_position).
  SELECT greatest(catalog_internal.position_of(last_value), (SELECT max(resumed_at) FROM catalog_internal.position_gaps))
  INTO drawn FROM catalog_internal.change_positions;
  SELECT resumed_at INTO resumed FROM catalog_internal.position_gaps WHERE forked_at < after AND after < resumed_at;
  IF after < oldest THEN
    RAISE EXCEPTION 'the changes after position % are no longer kept: the oldest position to go on from is %', after, oldest
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF after > drawn AND pg_is_in_recovery() THEN
    RAISE EXCEPTION 'position % is not here yet: the newest that this standby has received is %', after, drawn
      USING ERRCODE = 'serialization_failure', HINT = 'Try again once the standby has come so far, or ask the primary.';
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF resumed IS NOT NULL THEN
    RAISE EXCEPTION 'position % is of another history: this database was restored from a state before it, or its server was replaced', after
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  END IF;
  PERFORM catalog_internal.refuse_written_anew('{catalog.price_history,catalog.product_history,catalog_internal.change_batches}');
END
$$;

REVOKE ALL ON FUNCTION catalog.changes(bigint, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes(bigint, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes(bigint, integer) IS 'All changes of the mirror after a position, in the order of their commits, at most so many: of prices, products and SKUs. Remember the last position. Fails with SQLSTATE CM001 where changes after the position are no longer kept, or the position is none of this database.';
--> statement-breakpoint
-- Everything that is known of one SKU and decides what its prices are worth, for whoever doubts one of them.
-- Null: it is not known. With the owner's rights, as most of it is nobody's to read as a whole.
CREATE OR REPLACE FUNCTION catalog.explain(sku text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
  SELECT jsonb_build_object(
    'sku', s.sku,
    'at', m.moment,
    'state', s.state,
    'price_source', s.price_source,
    'in_manifest', s.in_manifest,
    'scope', (
      SELECT jsonb_build_object('in_scope', d.outside_due_at IS NULL, 'asked_for_metadata', d.outside_due_at IS NOT NULL AND d.reason = 'scope', 'rules', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('kind', r.kind, 'value', r.name, 'include', r.include)
          ORDER BY r.kind = 'sku' DESC, r.include, r.kind, length(r.name) DESC, r.name), '[]')
        FROM (SELECT) one LEFT JOIN catalog.products pr ON pr.sku = s.sku
        CROSS JOIN LATERAL catalog_internal.scope_rules_of(s.sku, pr.brand, pr.model, pr.category) r
      ))
      FROM catalog_internal.scoping g WHERE g.scoped
    ),
    'product', (
      SELECT jsonb_build_object('name', pr.name, 'brand', pr.brand, 'model', pr.model, 'size_type', pr.size_map_size_type, 'refreshed_at', pr.refreshed_at)
      FROM catalog.products pr WHERE pr.sku = s.sku
    ),
    'answer', jsonb_build_object(
      'asked_at', s.asked_at, 'because', d.asked_because, 'priced_at', s.priced_at, 'first_priced_at', s.first_priced_at,
      'age_seconds', extract(epoch FROM t.price_age)::float8
    ),
    'report', jsonb_build_object(
      'reported_at', s.reported_at, 'removed_at', s.removed_at, 'asked_since', s.reported_at IS NOT NULL AND coalesce(s.asked_at >= s.reported_at, false),
      'again_at', d.again_at, 'missed_moves', coalesce(d.missed_moves, 0)
    ),
    'trust', jsonb_build_object(
      'p_right', t.p_right, 'size_p_right', t.size_p_right, 'confidence', e.confidence, 'actionable', t.actionable, 'doubt', t.doubt,
      'doubted', CASE WHEN d.doubt IS NOT NULL THEN jsonb_build_object('oddity', d.oddity, 'since', d.doubted_at, 'before', d.believed) END,
      'stale', t.stale, 'past_target', t.past_target, 'target_seconds', extract(epoch FROM t.target_age)::float8
    ),
    'belief', jsonb_build_object(
      'cohort', c.cohort,
      'minutes_between_changes', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.beta, 120) + coalesce(l.prior_part, least(1, l.beta / 120)) * (e.live_prior_minutes - 120)) / coalesce(l.alpha, 0.8) END,
      'own_rate', l.sku IS NOT NULL,
      'moved_with_line', CASE WHEN c.cohort IN ('live', 'unlisted') AND l.hazard > 0 THEN 1 - exp(-least(60, l.hazard)) END,
      'hinted_by', (
        SELECT jsonb_agg(jsonb_build_object('source', q.source, 'at', q.hinted_at, 'moved', 1 - exp(-q.hazard)) ORDER BY q.hinted_at, q.source)
        FROM catalog_internal.waiting_hints q WHERE q.sku = s.sku
      ),
      'sizes_that_move', CASE WHEN c.cohort IN ('live', 'unlisted')
        THEN (coalesce(l.sizes_moved, 0) + 20 * e.live_moved_part) / (coalesce(l.sizes_seen, 0) + 20) ELSE e.snapshot_moved_part END,
      'looks', k.looks, 'right_share', k.right_share, 'claimed_share', k.claimed_share
    ),
    'next', jsonb_build_object(
      'look_at', t.next_look_at, 'due_at', CASE WHEN isfinite(d.due_at) THEN d.due_at END, 'reason', d.reason, 'is_due', t.owed, 'lane', t.owed_lane,
      'under_way', d.claim IS NOT NULL, 'held_until', d.held_until, 'deferrals', t.deferrals, 'failures', t.failures,
      'last_error', d.last_error, 'watched', w.weight
    ),
    'promise', (
      SELECT jsonb_build_object('max_age_seconds', extract(epoch FROM m.max_age)::float8, 'feasible', m.feasible, 'kept_share', m.kept_share, 'because', m.because)
      FROM catalog.promises m WHERE m.sku = s.sku
    ),
    'prices', coalesce((
      SELECT jsonb_agg(jsonb_build_object(
        'size', p.size, 'price', p.price, 'since', p.changed_at, 'actionable', t.size_actionable AND p.price IS NOT NULL,
        'before', CASE WHEN h.id IS NOT NULL THEN jsonb_build_object('price', h.old_price, 'until', h.observed_at) END
      ) ORDER BY p.size)
      FROM catalog.prices p
      LEFT JOIN LATERAL (
        -- Up to a correction of what the sizes mean, it was the price of another size.
        SELECT h.id, h.old_price, h.observed_at FROM catalog.price_history h
        WHERE h.sku = p.sku AND h.size = p.size AND NOT h.size_type_changed AND h.id > coalesce((
          SELECT max(c.id) FROM catalog.product_history c
          WHERE c.sku = s.sku AND c.field = 'size_map_size_type' AND c.old_value IS NOT NULL
        ), 0)
        ORDER BY h.id DESC LIMIT 1
      ) h ON true
      WHERE p.sku = s.sku
    ), '[]')
  )
  FROM catalog.skus s
  JOIN catalog.sku_trust t ON t.sku = s.sku
  LEFT JOIN catalog_internal.due d ON d.sku = s.sku
  LEFT JOIN catalog_internal.live_rates l ON l.sku = s.sku
  LEFT JOIN catalog_internal.watched w ON w.sku = s.sku
  CROSS JOIN catalog_internal.price_beliefs() e
  CROSS JOIN catalog_internal.moment() AS m(moment)
  CROSS JOIN LATERAL (
    SELECT catalog_internal.cohort_of(s.price_source, s.in_manifest AND d.missed_moves IS NULL, coalesce(d.live, false), catalog_internal.is_reported(d, m.moment)) AS cohort
  ) c
  LEFT JOIN LATERAL (
    SELECT sum(looks)::bigint AS looks, sum(looks * right_share) / nullif(sum(looks), 0) AS right_share,
           sum(looks * claimed_share) / nullif(sum(looks), 0) AS claimed_share
    FROM catalog.calibration WHERE cohort = c.cohort
  ) k ON true
  WHERE s.sku = explain.sku
$$;

REVOKE ALL ON FUNCTION catalog.explain(text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.explain(text) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.explain(text) IS 'Where each number of a SKU comes from, as JSON: whether it is in scope, and by which rules of catalog.scope (the first decides; null: MIRROR_SCOPE is catalog); the answer, and why it was asked for; the report of the delta, when it is asked once more for it, and how many changes the delta has left out since its last report of one; how likely the prices are right, and what speaks against them; what is believed of its changes; the next refresh; each size with the price before. Null: the SKU is not known.';
