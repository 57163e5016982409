-- Corrects what a clock that was ahead has written about SKUs, for at most the given number of SKUs after the named
-- one, and marks them due, because nobody knows how long ago they were requested. Returns the last of them, or null if
-- there are no more.
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
  UPDATE catalog_internal.due d SET doubted_at = catalog_internal.happened(doubted_at, moment, shift),
    again_at = catalog_internal.awaited(again_at, moment, shift)
  FROM unnest(ahead) AS f(sku) WHERE d.sku = f.sku AND greatest(d.doubted_at, d.again_at) > moment;
  IF asked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(asked, 'clock');
  END IF;
  RETURN ahead[cardinality(ahead)];
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.redate_skus(interval, text, integer) FROM PUBLIC;
