CREATE SEQUENCE "catalog_internal"."change_positions" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE SEQUENCE "catalog_internal"."dropped_positions" INCREMENT BY 1 MINVALUE 0 MAXVALUE 9223372036854775807 START WITH 0 CACHE 1;--> statement-breakpoint
CREATE TABLE "catalog_internal"."history_milestones" (
	"position" bigint PRIMARY KEY NOT NULL,
	"at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "catalog"."price_history" ALTER COLUMN "id" DROP IDENTITY;--> statement-breakpoint
ALTER TABLE "catalog"."price_history" ADD COLUMN "size_type_changed" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "catalog"."product_history" ALTER COLUMN "id" DROP IDENTITY;--> statement-breakpoint
ALTER TABLE "catalog"."product_history" ALTER COLUMN "id" SET DEFAULT nextval('catalog_internal.change_positions');--> statement-breakpoint

-- price_history becomes partitioned by id, and the table of before its first partition, as it is: nothing is copied. Ids of
-- before stay below 10^12 (the CHECK that migrateDatabase has validated beforehand, without locking anybody out, saves ATTACH
-- its scan); where there are any, new ones begin there. What others have put upon the table goes over to the new one, or is
-- named and refused: it would go on with the rows of before alone.
DO $$
DECLARE
  former constant oid := 'catalog.price_history'::regclass;
  had_rows constant boolean := EXISTS (SELECT FROM catalog.price_history) OR EXISTS (SELECT FROM catalog.product_history);
  upon text;
  again text[];
  statement text;
BEGIN
  SELECT string_agg(what, ', ') INTO upon FROM (
    SELECT 'materialized view ' || v.oid::regclass FROM pg_class v WHERE v.relkind = 'm' AND EXISTS (
      SELECT FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
      WHERE r.ev_class = v.oid AND d.refobjid = former)
    UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = former AND NOT tgisinternal
    UNION ALL SELECT 'foreign key of ' || conrelid::regclass FROM pg_constraint WHERE contype = 'f' AND confrelid = former
    UNION ALL SELECT 'publication ' || pubname FROM pg_publication_rel JOIN pg_publication p ON p.oid = prpubid WHERE prrelid = former
  ) u(what);
  IF upon IS NOT NULL THEN
    RAISE EXCEPTION 'catalog.price_history becomes a partitioned table, and cannot while it is used by: %', upon
      USING HINT = 'Drop these, let the daemon migrate, and make them again.';
  END IF;

  SELECT array_agg(what) INTO again FROM (
    SELECT format('CREATE OR REPLACE VIEW %s %s AS %s', v.oid::regclass,
      'WITH (' || array_to_string(v.reloptions, ', ') || ')', pg_get_viewdef(v.oid))
    FROM pg_class v WHERE v.relkind = 'v' AND EXISTS (
      SELECT FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
      WHERE r.ev_class = v.oid AND d.refobjid = former)
    UNION ALL
    SELECT format('GRANT %s ON catalog.price_history TO %s %s', a.privilege_type,
      CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
      CASE WHEN a.is_grantable THEN 'WITH GRANT OPTION' END)
    FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = former AND a.grantee <> c.relowner
    UNION ALL
    SELECT format('GRANT %s (%I) ON catalog.price_history TO %s', a.privilege_type, attname,
      CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
    FROM pg_attribute, aclexplode(attacl) a WHERE attrelid = former
  ) a(what);

  ALTER TABLE catalog.price_history RENAME TO price_history_former;
  ALTER TABLE catalog.price_history_former SET SCHEMA catalog_internal;
  CREATE TABLE catalog.price_history (
    id bigint DEFAULT nextval('catalog_internal.change_positions') NOT NULL,
    sku text NOT NULL,
    size text NOT NULL,
    old_price integer,
    new_price integer,
    observed_at timestamptz NOT NULL,
    size_type_changed boolean DEFAULT false NOT NULL,
    CONSTRAINT price_history_pkey PRIMARY KEY (id)
  ) PARTITION BY RANGE (id);
  CREATE INDEX price_history_sku ON catalog.price_history USING btree (sku, id);
  CREATE INDEX price_history_observed_at ON catalog.price_history USING brin (observed_at);
  FOREACH statement IN ARRAY coalesce(again, '{}') LOOP
    EXECUTE statement;
  END LOOP;

  IF NOT EXISTS (SELECT FROM catalog_internal.price_history_former) THEN
    DROP TABLE catalog_internal.price_history_former;
  ELSE
    IF NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = former AND conname = 'price_history_former' AND convalidated) THEN
      ALTER TABLE catalog_internal.price_history_former DROP CONSTRAINT IF EXISTS price_history_former;
      ALTER TABLE catalog_internal.price_history_former ADD CONSTRAINT price_history_former CHECK (id < 1000000000000);
    END IF;
    ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.price_history_former
      FOR VALUES FROM (MINVALUE) TO (1000000000000);
  END IF;
  IF had_rows THEN
    PERFORM setval('catalog_internal.change_positions', 1000000000000, false);
  END IF;
END
$$;
--> statement-breakpoint

-- Whoever writes history holds this until the end of the transaction, and takes it before a position is drawn: so positions
-- come in the order of the commits, and a reader needs to remember one number. Other ways, and why not: store/changes.ts.
CREATE FUNCTION catalog_internal.lock_changes() RETURNS void
LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtext('catalog_internal.changes'))
$$;
--> statement-breakpoint

-- Of each insert, whoever makes it: an older daemon that still runs beside this one, or a person. Before the statement, so
-- before the defaults of its first row.
CREATE FUNCTION catalog_internal.history_is_written() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM catalog_internal.lock_changes();
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER in_order BEFORE INSERT ON catalog.price_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();
--> statement-breakpoint
CREATE TRIGGER in_order BEFORE INSERT ON catalog.product_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();
--> statement-breakpoint

-- Partition n of price_history holds the positions from 5,000,000 n on. Makes the one that is written and the next, where
-- they are not there; under the lock, as two may find one missing. A table that is attached when made locks out nobody.
CREATE FUNCTION catalog_internal.add_history_chunks() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  chunk bigint;
  called text;
BEGIN
  FOR chunk IN SELECT last_value / 5000000 + ahead FROM catalog_internal.change_positions, generate_series(0, 1) ahead LOOP
    called := format('price_history_%s', chunk);
    CONTINUE WHEN to_regclass('catalog_internal.' || called) IS NOT NULL;
    PERFORM catalog_internal.lock_changes();
    -- Made by another while this one waited: asked of the catalog itself, as a name once not found is remembered.
    CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'catalog_internal'::regnamespace AND relname = called);
    EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS)', called);
    EXECUTE format('ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.%I FOR VALUES FROM (%s) TO (%s)',
      called, chunk * 5000000, (chunk + 1) * 5000000);
    INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$$;
--> statement-breakpoint
SELECT catalog_internal.add_history_chunks();
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.lock_changes(), catalog_internal.history_is_written(), catalog_internal.add_history_chunks() FROM PUBLIC;
--> statement-breakpoint
COMMENT ON TABLE catalog.price_history IS 'Every observed price move, append-only; kept for HISTORY_RETENTION. No rows for the first observation of a SKU. old_price null: the size appeared; new_price null: it went.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.price_history.id IS 'Position among all changes (catalog.changes), in the order of the commits.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.price_history.size_type_changed IS 'The same answer corrected size_map.size_type: the size means something else now, and this is no move of the market.';
--> statement-breakpoint
COMMENT ON TABLE catalog.product_history IS 'Every observed metadata change, append-only, kept for good; field names the column of catalog.products. size_map_size_type: every size of the SKU means something else from here on.';
--> statement-breakpoint
COMMENT ON COLUMN catalog.product_history.id IS 'Position among all changes (catalog.changes), in the order of the commits.';
