CREATE TABLE "catalog_internal"."lock_changes" ();
--> statement-breakpoint
CREATE TABLE "catalog_internal"."lock_counts" ();
--> statement-breakpoint
CREATE TABLE "catalog_internal"."lock_new_skus" ();
--> statement-breakpoint
CREATE TABLE "catalog_internal"."lock_pace" ();
--> statement-breakpoint
CREATE TABLE "catalog_internal"."lock_schedules" ();
--> statement-breakpoint
-- A transaction that writes history takes this lock before it draws a position, and holds it until it ends: so
-- positions come in the order of the commits, and a reader needs to remember one number only. Other ways, and why
-- not: src/store/changes.ts.
CREATE OR REPLACE FUNCTION catalog_internal.lock_changes() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;
END
$$;
--> statement-breakpoint
-- Every transaction locks the SKUs that exist, in order of sku, and then inserts those that are new. Two that insert
-- at once could still wait for each other, where one is about to insert what the other has inserted: so they 
-- alternate. Held to the end of the transaction, and taken before any row of skus.
CREATE OR REPLACE FUNCTION catalog_internal.lock_new_skus() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.lock_new_skus IN EXCLUSIVE MODE;
END
$$;
--> statement-breakpoint
-- For the account's other services: permission to send one request with the account's api_key, counted in the same
-- log as the mirror's requests. They take precedence: the mirror gives way down to rate_floor (src/pace/policy.ts,
-- ownMost). The lock is the pacer's, and held until the caller's transaction ends.
CREATE OR REPLACE FUNCTION catalog.take_request(lane text DEFAULT 'other') RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s catalog_internal.settings;
  p catalog_internal.pace;
  moment timestamptz;
  span interval;
  allowed integer;
  total integer;
  foreigners integer;
  oldest timestamptz;
  until timestamptz;
BEGIN
  LOCK TABLE catalog_internal.lock_pace IN EXCLUSIVE MODE;
  -- The mirror's clock counts whole milliseconds.
  moment := date_trunc('milliseconds', clock_timestamp());
  SELECT * INTO s FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  -- After a refusal everyone backs off; then one half-open request goes out, and it is the mirror's. A half-open request nobody sends is not waited for.
  IF p.backoff_until > moment THEN
    RETURN ceil(extract(epoch FROM p.backoff_until - moment) * 1000);
  ELSIF p.backoff_until > moment - interval '2 minutes' THEN
    RETURN 1000;
  END IF;
  span := make_interval(secs => s.rate_window + least(0.5, s.rate_window / 20));
  allowed := greatest(1, floor(s.rate_limit * s.rate_window / extract(epoch FROM span))::integer - 1);
  SELECT count(*), count(*) FILTER (WHERE other_user), min(sent_at), min(sent_at) FILTER (WHERE other_user)
    INTO total, foreigners, oldest, until
    FROM catalog_internal.pace_sends WHERE sent_at > moment - span;
  IF total >= allowed THEN
    RETURN greatest(1, ceil(extract(epoch FROM oldest + span - moment) * 1000));
  ELSIF foreigners >= greatest(1, allowed - s.rate_floor) THEN
    RETURN greatest(1, ceil(extract(epoch FROM until + span - moment) * 1000));
  END IF;
  INSERT INTO catalog_internal.pace_sends (sent_at, lane, other_user) VALUES (moment, left(take_request.lane, 64), true);
  RETURN 0;
END
$$;
--> statement-breakpoint
COMMENT ON FUNCTION catalog.take_request(text) IS 'Leave to send one request to the partner: 0 = send it now, it is counted; else ask again after so many milliseconds. lane is a name of your choice, of 64 characters at most. Call it outside of transactions: until one ends, nobody else can take a request.';
