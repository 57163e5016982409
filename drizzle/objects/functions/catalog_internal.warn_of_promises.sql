-- Warns at once whoever asks for a promise that the account cannot keep. The statement's own rows count, and those of
-- nobody else's open transaction. It writes nothing and waits for nobody except a migration. In a SERIALIZABLE
-- transaction, others' promises are those that the mirror has read: sellers that each read the watchlist and add to it
-- would make each other fail. Weighing all promises takes long if there are many, so for ten seconds a session
-- remembers what they need together (in a setting, which is rolled back with its transaction). Meanwhile a statement
-- of few rows adds what its own need, and if that fits, so do all; what others have asked for since is weighed after
-- that. An UPDATE that leaves promises as the mirror has read them asks for none. SECURITY DEFINER, because
-- catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.warn_of_promises() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  apart CONSTANT boolean := current_setting('transaction_isolation') = 'serializable';
  few CONSTANT integer := 100;
  weighed_at text := round(extract(epoch FROM clock_timestamp())::numeric, 3)::text;
  remembered text[];
  fits boolean := false;
  rate CONSTANT double precision := catalog_internal.live_rate();
  shortest CONSTANT double precision := catalog_internal.shortest_promise(rate);
  most CONSTANT double precision := 60 / nullif(greatest(0, catalog_internal.live_promised_interval(shortest, rate)), 0);
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
           remembered[3]::double precision + coalesce(sum(f.demand) FILTER (WHERE NOT f.live), 0) AS others, bool_and(f.fits) AS each
    INTO n FROM catalog_internal.promises_that_fit(asked.skus, asked.ages, asked.weights) f;
    fits := n.live <= c.live AND n.others <= c.others AND coalesce(n.each, true);
  END IF;
  IF fits THEN
    weighed_at := remembered[1];
  ELSE
    SELECT count(*) AS promises, count(*) FILTER (WHERE NOT f.fits) AS left_out,
           count(*) FILTER (WHERE f.live AND f.demand > most) AS too_short,
           coalesce(sum(f.demand) FILTER (WHERE f.live AND NOT coalesce(f.demand > most, false)), 0) AS live,
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
    IF n.left_out > 0 AND n.left_out = n.too_short THEN
      RAISE WARNING 'the partner computes % live prices a minute: % of % promises are shorter than % and not kept',
        round(rate::numeric, 1), n.left_out, n.promises, make_interval(secs => ceil(shortest))
      USING HINT = 'Give a longer max_age.';
    ELSIF n.left_out > 0 THEN
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

CREATE OR REPLACE TRIGGER warn_of_promises AFTER INSERT ON catalog.watchlist
REFERENCING NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.warn_of_promises();
CREATE OR REPLACE TRIGGER warn_of_changed_promises AFTER UPDATE ON catalog.watchlist
REFERENCING NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.warn_of_promises();

-- Also where rows are put in as a replica does (session_replication_role): the server's log has it then.
ALTER TABLE catalog.watchlist ENABLE ALWAYS TRIGGER warn_of_promises, ENABLE ALWAYS TRIGGER warn_of_changed_promises;
