-- Says at once to whoever asks for a promise that the account cannot keep: the statement's own rows count,
-- and those of nobody else's open transaction. It writes nothing and waits for nobody but a migration. In a
-- SERIALIZABLE transaction others' promises are those that the mirror has read: sellers who each read the
-- watchlist and add to it would make each other fail. To weigh all promises takes long where there are many:
-- for ten seconds a session remembers what they need together (in a setting, which goes back where its
-- transaction does). Meanwhile a statement of few rows adds what these need, and where that fits, so do all;
-- what others have asked for since is weighed after that. An UPDATE that leaves promises as the mirror has
-- read them asks for none.
-- SECURITY DEFINER, because catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.warn_of_promises() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  apart CONSTANT boolean := current_setting('transaction_isolation') = 'serializable';
  few CONSTANT integer := 100;
  weighed_at text := round(extract(epoch FROM clock_timestamp())::numeric, 3)::text;
  remembered text[];
  fits boolean := false;
  asked record;
  c record;
  n record;
BEGIN
  SELECT array_agg(b.sku) AS skus, array_agg(b.max_age) AS ages, array_agg(b.weight) AS weights INTO asked
  FROM (SELECT sku, extract(epoch FROM max_age)::double precision AS max_age, weight FROM becomes WHERE max_age IS NOT NULL) b
  WHERE TG_OP <> 'UPDATE' OR NOT EXISTS (
    SELECT FROM catalog_internal.watched w WHERE w.sku = b.sku AND w.max_age = b.max_age AND w.weight = b.weight
  );
  IF asked.skus IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT * INTO c FROM catalog_internal.promise_capacity();
  -- Its owner may have set it to anything.
  remembered := regexp_match(current_setting('catalog_internal.promised', true),
    '^' || apart::text || ' ([0-9]{1,12}[.][0-9]{3}) ([0-9]{1,12}[.][0-9]{6}) ([0-9]{1,12}[.][0-9]{6})$');
  IF cardinality(asked.skus) <= few AND weighed_at::numeric - remembered[1]::numeric BETWEEN 0 AND 10 THEN
    SELECT remembered[2]::double precision + coalesce(sum(f.demand) FILTER (WHERE f.live), 0) AS live,
           remembered[3]::double precision + coalesce(sum(f.demand) FILTER (WHERE NOT f.live), 0) AS others
    INTO n FROM catalog_internal.promises_that_fit(asked.skus, asked.ages, asked.weights) f;
    fits := n.live <= c.live AND n.others <= c.others;
  END IF;
  IF fits THEN
    weighed_at := remembered[1];
  ELSE
    SELECT count(*) AS promises, count(*) FILTER (WHERE NOT f.fits) AS left_out, coalesce(sum(f.demand) FILTER (WHERE f.live), 0) AS live,
           coalesce(sum(f.demand) FILTER (WHERE NOT f.live), 0) AS others
    INTO n
    FROM (
      SELECT array_agg(sku) AS skus, array_agg(max_age) AS ages, array_agg(weight) AS weights FROM (
        SELECT sku, extract(epoch FROM max_age)::double precision AS max_age, weight FROM catalog.watchlist WHERE NOT apart
        UNION ALL
        SELECT sku, extract(epoch FROM max_age)::double precision, weight FROM becomes WHERE apart
        UNION ALL
        SELECT w.sku, w.max_age, w.weight FROM catalog_internal.watched w WHERE apart AND NOT EXISTS (SELECT FROM becomes b WHERE b.sku = w.sku)
      ) p WHERE max_age IS NOT NULL
    ) a
    CROSS JOIN LATERAL catalog_internal.promises_that_fit(a.skus, a.ages, a.weights) f;
    IF n.left_out > 0 THEN
      RAISE WARNING 'these promises need % requests a minute, % can be had for them: % of % are not kept',
        ceil(c.requests * greatest(n.live / c.live, n.others / c.others)), floor(c.requests), n.left_out, n.promises
      USING DETAIL = format('Refreshes a minute: live-priced SKUs need %s of %s, others %s of %s.', ceil(n.live), floor(c.live), ceil(n.others), floor(c.others)),
        HINT = 'Promises of the greatest weight are kept first, and among equal ones those of the greatest max_age; catalog.promises says which. Give a longer max_age, or to fewer SKUs.';
    END IF;
  END IF;
  PERFORM set_config('catalog_internal.promised', concat_ws(' ', apart::text, weighed_at, round(n.live::numeric, 6), round(n.others::numeric, 6)), false);
  IF c.hindered IS NOT NULL THEN
    RAISE WARNING 'no promise is kept at present: requests are %', CASE c.hindered WHEN 'calls are failing' THEN 'failing' ELSE c.hindered END;
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.warn_of_promises() FROM PUBLIC;
--> statement-breakpoint
-- Sets every sequence that numbers rows to what the rows have: logical replication and a copy of tables leave
-- sequences behind. Each that a column draws from is found in the catalog; numbers of claims are drawn by the
-- daemon. Of tables in the schema catalog only the two of the mirror that have such a column, as others are of sellers; elsewhere
-- those that this role may read and set. Positions that were dropped reach up to the oldest chunk. The claims of answers are read only where
-- the sequence is known to be behind, as that reads the whole ledger (by CASE: a volatile condition of WHERE
-- is asked of each row). Under the lock of the changes where one is behind, so that a look costs nobody
-- anything; one that is not behind is left alone, as others draw from it.
CREATE OR REPLACE FUNCTION catalog_internal.mend_sequences() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  drawn record;
  newest bigint;
  upcoming bigint;
BEGIN
  FOR drawn IN
    WITH tables AS (
      SELECT oid FROM pg_class WHERE NOT relispartition AND has_table_privilege(oid, 'SELECT') AND (
        relnamespace::regnamespace::text IN ('catalog_internal', 'catalog_queue')
        OR oid IN ('catalog.price_history'::regclass, 'catalog.product_history'::regclass))
    ), sequences AS (
      SELECT oid FROM pg_class
      WHERE relnamespace::regnamespace::text IN ('catalog', 'catalog_internal', 'catalog_queue') AND CASE relkind WHEN 'S' THEN has_sequence_privilege(oid, 'UPDATE') END
    )
    SELECT s.oid::regclass AS sequence, format('SELECT max(%I) FROM %s', a.attname, t.oid::regclass) AS query
    FROM sequences s
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid AND d.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef f ON f.oid = d.objid
    JOIN tables t ON t.oid = f.adrelid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = f.adnum
    UNION
    SELECT s.oid::regclass, format('SELECT max(%I) FROM %s', a.attname, t.oid::regclass)
    FROM sequences s
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    JOIN tables t ON t.oid = d.refobjid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
    UNION VALUES
      ('catalog_internal.change_positions'::regclass, 'SELECT max(last_id) FROM catalog_internal.change_batches'),
      ('catalog_internal.claim_numbers', 'SELECT greatest(
        (SELECT max(claim) FROM catalog_internal.due WHERE held_until IS NOT NULL), (SELECT max(run) FROM catalog_internal.tasks),
        (SELECT max(number) FROM catalog_internal.instances), (SELECT max(holder) FROM catalog_internal.followers), (SELECT seen_claim FROM catalog_internal.sync),
        CASE WHEN (SELECT seen_claim FROM catalog_internal.sync) > coalesce(pg_sequence_last_value(''catalog_internal.claim_numbers''), 0)
          THEN (SELECT max(d.asked_claim) FROM catalog_internal.due d) END)'),
      ('catalog_internal.dropped_positions'::regclass, $query$SELECT
        min(substring(pg_get_expr(relpartbound, oid) FROM $re$FROM \('?(\d+)'?\)$re$)::bigint) - 1
        FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'catalog.price_history'::regclass$query$)
  LOOP
    EXECUTE drawn.query INTO newest;
    -- Of one that was never drawn from, too: its last value is the next.
    EXECUTE format('SELECT last_value + is_called::int FROM %s', drawn.sequence) INTO upcoming;
    IF newest >= upcoming THEN
      PERFORM catalog_internal.lock_changes();
      -- Another may have set it while this one waited.
      PERFORM setval(drawn.sequence, greatest(newest, pg_sequence_last_value(drawn.sequence)));
      RAISE WARNING 'the sequence % was behind its rows: set to %', drawn.sequence, newest;
    END IF;
  END LOOP;
  PERFORM catalog_internal.add_history_chunks();
  -- A TRUNCATE that is rolled back leaves how far is dropped, and takes back since when all is kept.
  IF NOT EXISTS (SELECT FROM catalog_internal.history_milestones m, catalog_internal.dropped_positions d WHERE m.position >= d.last_value) THEN
    PERFORM catalog_internal.lock_changes();
    INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
    ON CONFLICT DO NOTHING;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mend_sequences() FROM PUBLIC;
