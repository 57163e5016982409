-- An open transaction around catalog.take_request held up the mirror and all others until it ended.
DO $$
BEGIN
  FOR i IN 0..15 LOOP
    EXECUTE format('CREATE SEQUENCE catalog_internal.others_sent_%s', i);
  END LOOP;
END
$$;
--> statement-breakpoint
-- Milliseconds that one of the sequences of others_sent counts: a fifteenth of the window and its guard (src/pace/policy.ts,
-- guardMs), so that sixteen reach back over both.
CREATE OR REPLACE FUNCTION catalog_internal.others_part() RETURNS bigint
LANGUAGE sql STABLE
RETURN (SELECT ceil((rate_window + least(0.5, rate_window / 20)) * 1000 / 15)::bigint FROM catalog_internal.settings);
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.others_part() FROM PUBLIC;
--> statement-breakpoint
-- Requests of the account's other services in the window of so long, and when the first of them leaves it. They are counted in
-- sequences, because what is done to a sequence is seen by everybody at once, whatever becomes of the caller's transaction:
-- sixteen that are used in turns, each for a fifteenth of window and guard, as its beginning in epoch milliseconds
-- * 2^20 + how many. So a request counts until the end of its fifteenth leaves the window.
CREATE OR REPLACE FUNCTION catalog_internal.others_sent(span interval, OUT sent integer, OUT leaves_at timestamptz)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
  WITH part AS (
    SELECT seq.value >> 20 AS began, (seq.value & 1048575)::integer AS requests
    FROM generate_series(0, 15) AS i,
      LATERAL (SELECT pg_sequence_last_value(format('catalog_internal.others_sent_%s', i)::regclass)) AS seq(value)
  ), present AS (
    SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now, extract(epoch FROM span) * 1000 AS ms,
      catalog_internal.others_part() AS part
  )
  SELECT coalesce(sum(requests), 0)::integer, to_timestamp((min(began) + min(present.part) + min(ms)) / 1000)
  FROM part, present WHERE began + present.part > now - ms AND began <= now + ms;
END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.others_sent(interval) FROM PUBLIC;
--> statement-breakpoint
-- Counts one request of the account's other services, for good: see others_sent. Under the pacer's lock.
CREATE OR REPLACE FUNCTION catalog_internal.count_other(moment timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part bigint := catalog_internal.others_part();
  number bigint := floor(extract(epoch FROM moment) * 1000 / part);
  counter regclass := format('catalog_internal.others_sent_%s', number % 16)::regclass;
  counted bigint := pg_sequence_last_value(counter);
BEGIN
  PERFORM setval(counter, CASE WHEN counted >> 20 = number * part THEN counted + 1 ELSE number * part << 20 | 1 END);
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.count_other(timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- For the account's other services: permission to send one request with the account's api_key. They take precedence: the
-- mirror gives way down to rate_floor (src/pace/policy.ts, ownMost). The lock is the pacer's. It is taken in a
-- subtransaction that is always rolled back, which frees it: the caller's transaction may stay open for hours. What is
-- counted meanwhile stays counted (others_sent), also where the caller rolls back: it may have sent by then.
CREATE OR REPLACE FUNCTION catalog.take_request(lane text DEFAULT 'other') RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  s catalog_internal.settings;
  p catalog_internal.pace;
  moment timestamptz;
  span interval;
  allowed integer;
  own integer;
  oldest timestamptz;
  others record;
  wait float8;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' AND transaction_timestamp() < clock_timestamp() - interval '1 second' THEN
    RAISE EXCEPTION 'this transaction does not see what the mirror has sent since it began' USING ERRCODE = 'CM002',
      HINT = 'Call catalog.take_request outside of transactions, or in one whose isolation level is read committed.';
  END IF;
  BEGIN
    LOCK TABLE catalog_internal.lock_pace IN EXCLUSIVE MODE;
    -- The mirror's clock counts whole milliseconds.
    moment := date_trunc('milliseconds', clock_timestamp());
    SELECT * INTO s FROM catalog_internal.settings;
    SELECT * INTO p FROM catalog_internal.pace;
    span := make_interval(secs => s.rate_window + least(0.5, s.rate_window / 20));
    allowed := greatest(1, floor(s.rate_limit * s.rate_window / extract(epoch FROM span))::integer - 1);
    SELECT count(*), min(sent_at) INTO own, oldest FROM catalog_internal.pace_sends WHERE sent_at > moment - span AND NOT other_user;
    SELECT * INTO others FROM catalog_internal.others_sent(span);
    -- After a refusal everyone backs off; then one half-open request goes out, and it is the mirror's. A half-open request nobody sends is not waited for.
    IF p.backoff_until > moment - interval '2 minutes' THEN
      wait := CASE WHEN p.backoff_until > moment THEN ceil(extract(epoch FROM p.backoff_until - moment) * 1000) ELSE 1000 END;
    ELSIF own + others.sent >= allowed THEN
      wait := greatest(1, ceil(extract(epoch FROM least(oldest + span, others.leaves_at) - moment) * 1000));
    ELSIF others.sent >= greatest(1, allowed - s.rate_floor) THEN
      wait := greatest(1, ceil(extract(epoch FROM others.leaves_at - moment) * 1000));
    ELSE
      PERFORM catalog_internal.count_other(moment);
      wait := 0;
    END IF;
    RAISE SQLSTATE 'CM000';
  EXCEPTION
    WHEN SQLSTATE 'CM000' THEN NULL;
    -- A daemon that is frozen with the lock loses it within ten seconds.
    WHEN lock_not_available THEN RETURN 1000;
  END;
  IF wait = 0 THEN
    INSERT INTO catalog_internal.pace_sends (sent_at, lane, other_user) VALUES (moment, left(take_request.lane, 64), true);
  END IF;
  RETURN wait;
END
$$;
--> statement-breakpoint
COMMENT ON FUNCTION catalog.take_request(text) IS 'Leave to send one request to the partner: 0 = send it now, it is counted, even if your transaction is rolled back; else ask again after so many milliseconds. lane is a name of your choice, of 64 characters at most.';
