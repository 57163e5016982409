-- Corrects when changes were observed according to a clock that was ahead. Their positions stay.
CREATE OR REPLACE FUNCTION catalog_internal.redate_history(shift interval) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
BEGIN
  UPDATE catalog.price_history SET observed_at = catalog_internal.happened(observed_at, moment, shift) WHERE observed_at > moment;
  UPDATE catalog.product_history SET observed_at = catalog_internal.happened(observed_at, moment, shift) WHERE observed_at > moment;
  UPDATE catalog_internal.change_batches SET observed_at = catalog_internal.happened(observed_at, moment, shift) WHERE observed_at > moment;
  UPDATE catalog_internal.history_milestones SET at = catalog_internal.happened(at, moment, shift) WHERE at > moment;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.redate_history(interval) FROM PUBLIC;
