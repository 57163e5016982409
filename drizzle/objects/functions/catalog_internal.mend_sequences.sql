-- Sets every sequence that numbers rows to match the rows, because logical replication and copies of tables leave
-- sequences behind. Sequences that a column draws from are found in the catalog; claim numbers are drawn by the
-- daemon. In the schema catalog only the mirror's own two tables with such a column are considered, since others are
-- sellers'; elsewhere, those that this role may read and set. Dropped positions reach up to the oldest chunk. The
-- claims of answers are read only if the sequence is known to be behind, because that reads the whole ledger (by CASE:
-- a volatile condition in WHERE is evaluated for each row). It takes the lock of the changes only if a sequence is
-- behind, so a check costs nobody anything; a sequence that is not behind is left alone, because others draw from it.
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
