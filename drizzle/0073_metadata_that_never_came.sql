-- A SKU whose request for its metadata was answered without any was out of scope for ever (apply_scope), and one
-- that was named to `refresh`, or by a rejected line alone, was forgotten before it was asked for (watched_to_ledger).
-- Whether a SKU is in scope, by the rules: `in`, `out`, or `unknown` where only its metadata can tell, and
-- no answer has had any yet: neither brand, nor model, nor category. A rule that names the SKU itself decides; of all others one that includes it has
-- to match, and none that excludes it. A single row.
CREATE OR REPLACE FUNCTION catalog_internal.scope_of(of_sku text, of_brand text, of_model text, of_category text, has_metadata boolean)
RETURNS TABLE (place text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
  SELECT CASE WHEN NOT g.scoped THEN 'in' ELSE (
    SELECT CASE
      WHEN bool_or(m.include) FILTER (WHERE m.kind = 'sku') THEN 'in'
      WHEN bool_or(NOT m.include) THEN 'out'
      WHEN bool_or(m.include) THEN 'in'
      WHEN g.by_metadata AND NOT has_metadata THEN 'unknown'
      ELSE 'out'
    END
    FROM catalog_internal.scope_rules_of(of_sku, of_brand, of_model, of_category) m
  ) END
  FROM catalog_internal.scoping g;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_of(text, text, text, text, boolean) FROM PUBLIC;
--> statement-breakpoint
-- How a row of the ledger is to stand by scope_of: `in`; `out`: not asked for; `asked`: asked for its metadata,
-- because a rule needs that, and no answer has had any. What would never be due in scope, as it was removed and has
-- had its request, is not. `kept`: when it was, or would be, due. Nothing goes by `reason`: daemons of earlier
-- versions give it.
CREATE OR REPLACE FUNCTION catalog_internal.scope_standing(place text, state text, reason text, kept timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN place <> 'unknown' THEN place
    WHEN state <> 'pending' AND kept = 'infinity' THEN 'out'
    ELSE 'asked'
  END;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_standing(text, text, text, timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- Sorts SKUs by the rules, and returns how many stand otherwise than before. Call it with their rows of the
-- ledger locked, after all that is written of them. What leaves the scope keeps all that is known of it: in
-- outside_due_at when it would be due, which marks move on; its lane is 0, which nobody claims. What comes
-- into it is due then, or now where that is past: since now it is late. What is asked for its metadata, and
-- was answered without any, waits: for what the price routes do not know as long as in scope; where a record
-- had none, an hour, then as long as it has had none, METADATA_INTERVAL at most. held_until keeps spare slots
-- from asking before. The lock holds back whoever changes the rules until this transaction has ended, so that
-- all SKUs that were sorted by the old ones are seen by the pass that follows (follow_scope). Planned each
-- time: a plan from when there were few rules would read all of them for each SKU.
CREATE OR REPLACE FUNCTION catalog_internal.apply_scope(skus text[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  moved bigint;
BEGIN
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  UPDATE catalog_internal.due d SET
    outside_due_at = CASE WHEN n.standing <> 'in' THEN n.kept END,
    due_at = CASE n.standing WHEN 'out' THEN 'infinity' WHEN 'asked' THEN n.asks_at ELSE greatest(n.kept, now()) END,
    held_until = CASE
      WHEN d.claim IS NOT NULL THEN d.held_until
      WHEN n.standing = 'asked' THEN CASE WHEN n.asks_at > now() THEN greatest(d.held_until, n.asks_at) ELSE d.held_until END
      -- What it has waited for is no longer asked; a second answer counts as soon as it would have.
      WHEN n.was = 'asked' AND d.due_at > now() THEN CASE WHEN d.doubt IS NOT NULL THEN least(d.held_until, d.doubted_at + interval '5 minutes') END
      ELSE d.held_until
    END,
    reason = n.reason,
    lane = CASE
      WHEN n.standing = 'out' THEN 0
      WHEN n.failures > 0 AND n.kept <= now() THEN catalog_internal.lane_of('error')
      ELSE catalog_internal.lane_of(n.reason)
    END,
    -- One that was asked for by name stays ahead of all others.
    rank = CASE WHEN d.rank < 'Infinity' THEN coalesce(n.weight, 1) ELSE d.rank END
  FROM (
    SELECT l.sku, l.failures, k.kept, t.standing, b.was, w.weight, a.asks_at,
      CASE
        WHEN t.standing = 'asked' THEN 'scope'
        WHEN l.reason <> 'scope' THEN l.reason
        WHEN k.state = 'pending' THEN 'new'
        -- Marked since it was answered.
        WHEN l.generation IS DISTINCT FROM l.asked_generation THEN 'changed'
        WHEN k.state <> 'priced' THEN 'metadata'
        WHEN l.doubt IS NOT NULL THEN 'doubted'
        WHEN l.live THEN 'live'
        WHEN NOT s.in_manifest THEN 'unlisted'
        WHEN g.sweep_interval > 0 AND g.sweep_interval <= g.metadata_interval THEN 'sweep'
        ELSE 'metadata'
      END AS reason
    FROM unnest(apply_scope.skus) AS u(sku) JOIN catalog_internal.due l ON l.sku = u.sku
    -- One that the same statement inserts is not to be seen here.
    LEFT JOIN catalog.skus s ON s.sku = u.sku LEFT JOIN catalog.products p ON p.sku = u.sku LEFT JOIN catalog_internal.watched w ON w.sku = u.sku
    CROSS JOIN catalog_internal.settings g
    CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, coalesce(p.brand, p.model, p.category) IS NOT NULL) o
    CROSS JOIN LATERAL (SELECT coalesce(l.outside_due_at, l.due_at) AS kept, coalesce(s.state, 'pending') AS state) k
    CROSS JOIN LATERAL (SELECT catalog_internal.scope_standing(o.place, k.state, l.reason, k.kept) AS standing) t
    CROSS JOIN LATERAL (SELECT CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END AS was) b
    CROSS JOIN LATERAL (
      SELECT greatest(now(), CASE
        WHEN k.state = 'pending' OR l.reason IN ('new', 'changed', 'watched', 'refresh') AND k.kept <= now() THEN now()
        WHEN k.state <> 'priced' THEN k.kept
        ELSE s.asked_at + least(make_interval(secs => g.metadata_interval), greatest(interval '1 hour', s.asked_at - p.changed_at))
      END) AS asks_at
    ) a
    WHERE t.standing <> b.was
  ) n
  WHERE d.sku = n.sku;
  GET DIAGNOSTICS moved = ROW_COUNT;
  RETURN moved;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.apply_scope(text[]) FROM PUBLIC;
--> statement-breakpoint
-- Sorts the next SKUs that are to be sorted, `most` of them, and returns whether there may be more. Those of
-- a pass are compared without a lock, as all that was sorted by other rules is committed (apply_scope), and
-- only those that stand otherwise than they are to are locked, in order of sku, as everyone locks the ledger.
-- Called with the row of `scoping` locked.
CREATE OR REPLACE FUNCTION catalog_internal.follow_scope(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  pass catalog_internal.scope_passes;
  last text;
  is_over boolean;
  piece text[];
BEGIN
  SELECT array_agg(sku) INTO piece FROM (SELECT sku FROM catalog_internal.scope_pending ORDER BY sku LIMIT most) p;
  DELETE FROM catalog_internal.scope_pending WHERE sku = ANY (piece);
  IF piece IS NULL THEN
    SELECT * INTO pass FROM catalog_internal.scope_passes ORDER BY id LIMIT 1;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    SELECT max(n.sku), count(*) < most OR coalesce(bool_or(NOT starts_with(n.sku, pass.prefix)), false),
      array_agg(n.sku) FILTER (WHERE starts_with(n.sku, pass.prefix) AND n.standing <> n.was)
    INTO last, is_over, piece
    FROM (
      SELECT l.sku, catalog_internal.scope_standing(o.place, s.state, l.reason, coalesce(l.outside_due_at, l.due_at)) AS standing,
        CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END AS was
      FROM (SELECT * FROM catalog_internal.due WHERE sku >= pass.from_sku ORDER BY sku LIMIT most) l
      LEFT JOIN catalog.skus s ON s.sku = l.sku LEFT JOIN catalog.products p ON p.sku = l.sku
      CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, coalesce(p.brand, p.model, p.category) IS NOT NULL) o
    ) n;
    IF is_over THEN
      DELETE FROM catalog_internal.scope_passes WHERE id = pass.id;
    ELSE
      -- The next one in the order of bytes.
      UPDATE catalog_internal.scope_passes SET from_sku = last || E'\x01' WHERE id = pass.id;
    END IF;
  END IF;
  IF piece IS NOT NULL THEN
    PERFORM FROM catalog_internal.due WHERE sku = ANY (piece) ORDER BY sku FOR UPDATE;
    PERFORM catalog_internal.apply_scope(piece);
  END IF;
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.follow_scope(integer) FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote. A row that is already due keeps its
-- earlier due_at and its better lane. Every mark moves the generation on, so that no answer to an earlier
-- request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of its
-- own failed, while a SKU that waits after any other error, or for a second answer, is asked again at once.
-- counts_as_live null leaves the live flag as it is; else it holds, whatever the SKU's deferrals had taught.
-- What is out of scope is marked in outside_due_at and stays unclaimed (apply_scope), what is asked for its
-- metadata waits for that no longer, and SKUs that the ledger does not know yet are sorted by the rules. A SKU that was asked for by name (refresh_skus) stays
-- ahead of all others until it is answered. Any other rank is the weight as it stands once the rows are
-- locked, because locking them may have waited for whoever tells the ledger of another weight
-- (watched_to_ledger). Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  marked bigint;
  ranked text[];
  unsorted text[];
  is_scoped boolean;
BEGIN
  -- Until this transaction ends nobody changes what is in scope.
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  is_scoped := (SELECT scoped FROM catalog_internal.scoping);
  WITH written AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(mark_due.skus) AS s
    ORDER BY s COLLATE "C"
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.outside_due_at IS NOT NULL THEN d.lane WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = (
        SELECT CASE
          WHEN d.reason = 'scope' THEN d.reason
          -- Who accepts a doubted price ends the wait for its second answer, and nothing else that its SKU is due for.
          WHEN d.reason = 'doubted' THEN excluded.reason
          -- No other reason to ask at once hides that it was reported: apply_scope and p_right go by that.
          WHEN excluded.reason = 'changed' OR excluded.reason = 'new' AND o.is_owed AND o.lane = 1 THEN 'changed'
          WHEN excluded.reason = 'new' THEN excluded.reason
          -- It may have been reported since its call began, which the answer to that does not settle.
          WHEN d.reason = 'new' AND o.is_owed AND excluded.lane < o.lane AND (d.claim IS NOT NULL OR d.asked_claim IS NOT NULL) THEN 'changed'
          -- What was reported stays so in the lane of errors, too, which is behind the one that it was marked for.
          WHEN o.is_owed AND (d.reason = 'changed' OR o.lane <= excluded.lane) THEN d.reason
          ELSE excluded.reason
        END
        FROM (
          SELECT coalesce(d.outside_due_at, d.due_at) <= now() AS is_owed,
            CASE WHEN d.lane > 0 THEN d.lane ELSE catalog_internal.lane_of(d.reason) END AS lane
        ) o
      ),
      live = coalesce(counts_as_live, d.live),
      live_left = CASE WHEN counts_as_live IS NULL THEN d.live_left ELSE 0 END,
      due_at = CASE WHEN d.outside_due_at IS NULL OR d.reason = 'scope' THEN least(d.due_at, excluded.due_at) ELSE d.due_at END,
      outside_due_at = CASE WHEN d.outside_due_at IS NOT NULL THEN least(d.outside_due_at, excluded.due_at) END,
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL OR d.reason = 'doubted' OR d.reason = 'scope' AND d.due_at > now()) AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank, is_scoped AND (generation = 1 OR outside_due_at IS NOT NULL) AS is_unsorted
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1), array_agg(sku) FILTER (WHERE is_unsorted)
  FROM written INTO marked, ranked, unsorted;
  ranked := ranked || ARRAY(SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus));
  UPDATE catalog_internal.due d SET rank = coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1)
  WHERE d.sku = ANY (ranked) AND d.rank <> coalesce((SELECT w.weight FROM catalog_internal.watched w WHERE w.sku = d.sku), 1) AND d.rank < 'Infinity';
  IF unsorted IS NOT NULL THEN
    PERFORM catalog_internal.apply_scope(unsorted);
  END IF;
  RETURN marked;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
--> statement-breakpoint
-- Tells the ledger of `most` SKUs what is pending of `watched`, and whether there is more. A SKU that is
-- watched anew is marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that
-- is watched no longer, is not marked for that; it gets its new rank at once where it is urgent, and with its
-- next mark elsewhere. A promise of its age holds from here on: one that was never asked for is to be at
-- once. Locks are taken in the order of everyone: lock_new_skus, known SKUs in order of sku, new SKUs, the
-- ledger in order of sku. Every row of the ledger is locked before its rank is compared, so that a concurrent
-- mark has either read the weight that counts now or is seen here. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each. What is written to
-- a row is looked up for it, as tables that were analyzed while they were empty would be joined by comparing
-- each row with each.
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
  -- Nobody but the watchlist has named it, nor has it been asked for: it is forgotten as one in scope (forgetUnknown),
  -- and not asked for its metadata.
  UPDATE catalog_internal.due d SET reason = 'watched', lane = 0, due_at = 'infinity'
  FROM catalog.skus s, catalog_internal.watched w
  WHERE w.sku = ANY (told) AND w.weight IS NULL AND s.sku = w.sku AND s.state = 'pending' AND NOT s.in_manifest
    AND d.sku = w.sku AND d.reason = 'scope' AND d.generation = 1 AND d.rank < 'Infinity'
    AND d.claim IS NULL AND d.deferrals = 0 AND d.failures = 0;
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
-- What stands outside by the functions before.
SELECT catalog_internal.sort_all_with('') FROM catalog_internal.scoping WHERE scoped AND by_metadata;
