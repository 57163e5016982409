-- What others than the mirror's own roles were granted on it: a parameter's name cannot be replaced.
CREATE TEMPORARY TABLE explain_rights ON COMMIT DROP AS
SELECT format('GRANT EXECUTE ON FUNCTION catalog.explain(text) TO %s', CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) AS statement
FROM pg_proc p, aclexplode(proacl)
WHERE pronamespace = 'catalog'::regnamespace AND proname = 'explain' AND grantee <> proowner;
--> statement-breakpoint
DROP FUNCTION catalog.explain(text);
--> statement-breakpoint
-- Everything that is known of one SKU and decides what its prices are worth, for whoever doubts one of them. Null: it is not known.
-- With the owner's rights, as most of it is nobody's to read as a whole.
CREATE OR REPLACE FUNCTION catalog.explain(sku text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'sku', s.sku,
    'at', now(),
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
      'reported_at', s.reported_at, 'removed_at', s.removed_at, 'asked_since', s.reported_at IS NOT NULL AND coalesce(s.asked_at >= s.reported_at, false)
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
      'under_way', d.claim IS NOT NULL, 'held_until', d.held_until, 'deferrals', t.deferrals, 'failures', t.failures, 'watched', w.weight
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
        SELECT h.id, h.old_price, h.observed_at FROM catalog.price_history h WHERE h.sku = p.sku AND h.size = p.size ORDER BY h.id DESC LIMIT 1
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
  CROSS JOIN LATERAL (
    SELECT catalog_internal.cohort_of(s.price_source, s.in_manifest, coalesce(d.live, false), t.owed AND d.reason = 'changed') AS cohort
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

COMMENT ON FUNCTION catalog.explain(text) IS 'Where each number of a SKU comes from, as JSON: whether it is in scope, and by which rules of catalog.scope (the first decides; null: MIRROR_SCOPE is catalog); the answer, and why it was asked for; the report of the delta; how likely the prices are right, and what speaks against them; what is believed of its changes; the next refresh; each size with the price before. Null: the SKU is not known.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller.
CREATE OR REPLACE FUNCTION catalog.movers(within interval DEFAULT '1 hour', most integer DEFAULT 100)
RETURNS TABLE (sku text, size text, old_price integer, new_price integer, change integer, change_ratio double precision,
  moves bigint, last_moved_at timestamptz, name text, brand text, model text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
BEGIN ATOMIC
  SELECT m.sku, m.size, m.old_price, m.new_price, m.new_price - m.old_price,
         m.new_price::float8 / nullif(m.old_price, 0) - 1, m.moves, m.last_moved_at, pr.name, pr.brand, pr.model
  FROM (
    SELECT h.sku, h.size, count(*) AS moves, max(h.observed_at) AS last_moved_at,
           (array_agg(h.old_price ORDER BY h.id))[1] AS old_price, (array_agg(h.new_price ORDER BY h.id DESC))[1] AS new_price
    FROM catalog.price_history h
    WHERE h.observed_at > now() - within
      -- Up to a correction of what the sizes mean, the prices were of other sizes. What they mean being known for the first time corrects nothing.
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
END;

REVOKE ALL ON FUNCTION catalog.movers(interval, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.movers(interval, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.movers(interval, integer) IS 'What moved within a time (one hour): sizes by the relative change from the price before it to the newest, largest first. Sizes that only appeared or went are not in it, nor moves up to a correction of size_type: sizes meant something else then.';
--> statement-breakpoint
-- Sets every sequence that numbers rows to what the rows have: logical replication and a copy of tables leave sequences behind.
-- Each that a column draws from is found in the catalog; numbers of claims are drawn by the daemon. Positions that were dropped
-- reach up to the oldest chunk. The claims of answers are read only where the sequence is known to be behind, as that reads the whole ledger. Under the lock of the changes; one that is not behind is left alone, as others draw from it.
CREATE OR REPLACE FUNCTION catalog_internal.mend_sequences() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  drawn record;
  newest bigint;
BEGIN
  PERFORM catalog_internal.lock_changes();
  FOR drawn IN
    SELECT s.oid::regclass AS sequence, format('SELECT max(%I) FROM %s', a.attname, t.oid::regclass) AS query
    FROM pg_class s
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid AND d.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef f ON f.oid = d.objid
    JOIN pg_class t ON t.oid = f.adrelid AND NOT t.relispartition
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = f.adnum
    WHERE s.relkind = 'S' AND s.relnamespace::regnamespace::text IN ('catalog', 'catalog_internal', 'catalog_queue')
    UNION
    SELECT s.oid::regclass, format('SELECT max(%I) FROM %s', a.attname, t.oid::regclass)
    FROM pg_class s
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    JOIN pg_class t ON t.oid = d.refobjid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
    WHERE s.relkind = 'S' AND s.relnamespace::regnamespace::text IN ('catalog', 'catalog_internal', 'catalog_queue')
    UNION VALUES
      ('catalog_internal.change_positions'::regclass, 'SELECT max(last_id) FROM catalog_internal.change_batches'),
      ('catalog_internal.claim_numbers', 'SELECT greatest(
        (SELECT max(claim) FROM catalog_internal.due WHERE held_until IS NOT NULL), (SELECT max(run) FROM catalog_internal.tasks),
        (SELECT max(number) FROM catalog_internal.instances), (SELECT max(holder) FROM catalog_internal.followers), (SELECT seen_claim FROM catalog_internal.sync),
        (SELECT max(d.asked_claim) FROM catalog_internal.due d
         WHERE (SELECT seen_claim FROM catalog_internal.sync) > coalesce(pg_sequence_last_value(''catalog_internal.claim_numbers''), 0)))'),
      ('catalog_internal.dropped_positions'::regclass, $query$SELECT
        min(substring(pg_get_expr(relpartbound, oid) FROM $re$FROM \('?(\d+)'?\)$re$)::bigint) - 1
        FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'catalog.price_history'::regclass$query$)
  LOOP
    EXECUTE drawn.query INTO newest;
    IF newest > coalesce(pg_sequence_last_value(drawn.sequence), 0) THEN
      PERFORM setval(drawn.sequence, newest);
      RAISE WARNING 'the sequence % was behind its rows: set to %', drawn.sequence, newest;
    END IF;
  END LOOP;
  PERFORM catalog_internal.add_history_chunks();
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mend_sequences() FROM PUBLIC;
--> statement-breakpoint
-- Whether a session of this database is there that has this number and began then; of a session of another role the beginning is not shown,
-- and all that is known is that none from before the server's start lives. An advisory lock
-- would not do: anybody who may connect could hold it.
CREATE OR REPLACE FUNCTION catalog_internal.session_lives(pid integer, began timestamptz) RETURNS boolean
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT EXISTS (
    SELECT FROM pg_stat_activity a
    WHERE a.pid = session_lives.pid AND a.datname = current_database() AND (a.backend_start = session_lives.began OR a.backend_start IS NULL AND session_lives.began >= pg_postmaster_start_time())
  );
END;

REVOKE ALL ON FUNCTION catalog_internal.session_lives(integer, timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- Puts right what a clock that was ahead has written of SKUs, of at most so many after the SKU named, and marks them due: nobody knows
-- how long ago they were asked about. Returns the last of them, null: there are no more.
CREATE OR REPLACE FUNCTION catalog_internal.redate_skus(shift interval, after text, most integer) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
  ahead text[];
  asked text[];
BEGIN
  SELECT array_agg(sku ORDER BY sku) INTO ahead FROM (
    SELECT sku FROM catalog.skus
    -- Prices of those asked again since the clock is right may have changed before.
    WHERE sku > after AND (
      greatest(first_seen_at, first_priced_at, priced_at, reported_at, removed_at) > moment OR asked_at > moment - interval '10 minutes'
    )
    ORDER BY sku LIMIT most FOR NO KEY UPDATE
  ) a;
  IF ahead IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT array_agg(s.sku) INTO asked FROM unnest(ahead) AS f(sku) JOIN catalog.skus s USING (sku)
  WHERE s.asked_at > moment AND s.state <> 'removed';
  UPDATE catalog.skus s SET first_seen_at = catalog_internal.happened(first_seen_at, moment, shift),
    first_priced_at = catalog_internal.happened(first_priced_at, moment, shift),
    priced_at = catalog_internal.happened(priced_at, moment, shift),
    asked_at = catalog_internal.happened(asked_at, moment, shift),
    reported_at = catalog_internal.happened(reported_at, moment, shift),
    removed_at = catalog_internal.happened(removed_at, moment, shift)
  FROM unnest(ahead) AS f(sku)
  WHERE s.sku = f.sku AND greatest(first_seen_at, first_priced_at, priced_at, asked_at, reported_at, removed_at) > moment;
  UPDATE catalog.prices p SET changed_at = catalog_internal.happened(changed_at, moment, shift)
  FROM unnest(ahead) AS f(sku) WHERE p.sku = f.sku AND p.changed_at > moment;
  UPDATE catalog.products p SET changed_at = catalog_internal.happened(changed_at, moment, shift),
    refreshed_at = catalog_internal.happened(refreshed_at, moment, shift)
  FROM unnest(ahead) AS f(sku) WHERE p.sku = f.sku AND greatest(p.changed_at, p.refreshed_at) > moment;
  UPDATE catalog_internal.due d SET doubted_at = catalog_internal.happened(doubted_at, moment, shift)
  FROM unnest(ahead) AS f(sku) WHERE d.sku = f.sku AND d.doubted_at > moment;
  IF asked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(asked, 'clock');
  END IF;
  RETURN ahead[cardinality(ahead)];
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.redate_skus(interval, text, integer) FROM PUBLIC;
--> statement-breakpoint
-- Tells the ledger of `most` SKUs what is pending of `watched`, and whether there is more. A SKU that is watched anew is
-- marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that is watched no longer, is not marked
-- for that; it gets its new rank at once where it is urgent, and with its next mark elsewhere. A promise of its age holds from here on: one that was
-- never asked for is to be at once.
-- Locks are taken in the order of everyone: lock_new_skus, known SKUs in order of sku, new SKUs, the ledger in order of
-- sku. Every row of the ledger is locked before its rank is compared, so that a concurrent mark has either read the
-- weight that counts now or is seen here. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each. What is written to a row is looked up for it, as tables that were
-- analyzed while they were empty would be joined by comparing each row with each.
CREATE OR REPLACE FUNCTION catalog_internal.watched_to_ledger(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  told text[];
  marked text[];
  added text[];
BEGIN
  SELECT array_agg(sku), array_agg(sku) FILTER (WHERE pending = 'mark') INTO told, marked
  FROM (SELECT sku, pending FROM catalog_internal.watched WHERE pending IS NOT NULL ORDER BY sku LIMIT most) o;
  IF told IS NULL THEN
    RETURN false;
  END IF;
  IF cardinality(marked) > (SELECT count(*) FROM catalog.skus WHERE sku = ANY (marked)) THEN
    PERFORM catalog_internal.lock_new_skus();
  END IF;
  PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR NO KEY UPDATE;
  WITH new AS (
    INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT DO NOTHING RETURNING sku
  )
  SELECT array_agg(sku) INTO added FROM new;
  PERFORM FROM catalog_internal.due WHERE sku = ANY (told) ORDER BY sku FOR UPDATE;
  UPDATE catalog_internal.due d SET rank = coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1)
  WHERE d.sku = ANY (told) AND d.lane = 1 AND d.rank < 'Infinity'
    AND d.rank <> coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1);
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  -- Answers that were applied meanwhile are seen, because their rows are locked.
  UPDATE catalog_internal.due d SET (promised_at, promised_by) = (
    -- One that is late from the beginning is no more urgent than one that was kept until now.
    SELECT n.promised_at, greatest(n.promised_at, n.promised_since) + (n.max_age - n.every) FROM (
      SELECT w.promised_since, make_interval(secs => w.max_age) AS max_age, i.every,
        CASE WHEN s.state = 'pending' THEN w.promised_since ELSE s.asked_at + i.every END AS promised_at
      FROM catalog_internal.watched w JOIN catalog.skus s ON s.sku = w.sku
      CROSS JOIN LATERAL (SELECT make_interval(secs => catalog_internal.promised_interval(w.max_age)) AS every) i
      WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL
    ) n WHERE n.promised_at IS NOT NULL
  )
  WHERE d.sku = ANY (told) AND (d.promised_at IS NOT NULL
    OR EXISTS (SELECT FROM catalog_internal.watched w WHERE w.sku = d.sku AND w.feasible AND w.max_age IS NOT NULL));
  DELETE FROM catalog_internal.promise_cases p USING catalog_internal.watched w
  WHERE w.sku = ANY (told) AND w.max_age IS NULL AND p.sku = w.sku;
  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;
  UPDATE catalog_internal.watched SET pending = NULL WHERE sku = ANY (told);
  IF catalog_internal.add_sku_changes(added, NULL, NULL, NULL) > 0 THEN
    PERFORM catalog_internal.notify_changes();
  END IF;
  RETURN cardinality(told) = most;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watched_to_ledger(integer) FROM PUBLIC;
--> statement-breakpoint
-- Every follower, and how far it is behind: changes after its position (10,000 are counted at most) and for how long the first of them has waited. A position
-- that is lost (CM001) is said of its follower, and hides no other.
CREATE OR REPLACE FUNCTION catalog_internal.followers_now()
RETURNS TABLE (name text, delivery text, "position" bigint, after_sku text, behind integer, behind_seconds double precision, lost boolean,
  held_by text, failures integer, failing_since timestamptz, last_status integer, last_said text, last_at timestamptz, dead_letters integer)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f catalog_internal.followers;
BEGIN
  FOR f IN SELECT * FROM catalog_internal.followers o ORDER BY o.name LOOP
    name := f.name; delivery := f.delivery; "position" := f."position"; after_sku := f.after_sku;
    failures := f.failures; failing_since := f.failing_since; last_status := f.last_status; last_said := f.last_said; last_at := f.last_at;
    held_by := CASE WHEN catalog_internal.session_lives(f.pid, f.backend_start) THEN f.held_by END;
    SELECT count(*) INTO dead_letters FROM catalog_internal.dead_letters d WHERE d.follower = f.name;
    behind := NULL; behind_seconds := NULL; lost := false;
    BEGIN
      SELECT count(*), coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (array_agg(c.observed_at ORDER BY c."position"))[1])), 0)
      INTO behind, behind_seconds FROM catalog.changes(f."position", 10000) c;
    EXCEPTION WHEN SQLSTATE 'CM001' THEN
      lost := true;
    END;
    -- Of a first copy the position stands until all of it is taken.
    IF f.after_sku IS NOT NULL AND behind > 0 THEN
      behind_seconds := greatest(0, extract(epoch FROM clock_timestamp() - f.updated_at));
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.followers_now() FROM PUBLIC;
--> statement-breakpoint
DO $$
DECLARE
  kept text;
BEGIN
  FOR kept IN SELECT statement FROM explain_rights LOOP
    EXECUTE kept;
  END LOOP;
END
$$;
