-- All changes since this moment are kept. Of dropped ones it is known that they were observed before the first
-- milestone after them; the hour is that of position_before. A later milestone with an earlier time counts too,
-- because the clock may have been set back meanwhile. To be called after reading the history: how far it is dropped is
-- the same in every snapshot, and what was read is not dropped before the transaction ends.
CREATE OR REPLACE FUNCTION catalog_internal.history_known_from() RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  dropped bigint;
  known timestamptz;
BEGIN
  dropped := catalog_internal.dropped_to();
  IF dropped = 0 THEN
    RETURN '-infinity';
  END IF;
  SELECT max(at) + interval '1 hour' INTO known FROM catalog_internal.history_milestones
  WHERE position <= (SELECT min(position) FROM catalog_internal.history_milestones WHERE position >= dropped);
  -- None: the snapshot is from before it was made.
  RETURN coalesce(known, 'infinity');
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_known_from() FROM PUBLIC;
