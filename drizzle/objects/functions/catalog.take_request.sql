-- For the account's other services: permission to send one request with the account's api_key. They take precedence:
-- the mirror gives way, down to rate_floor (src/pace/policy.ts, ownMost). The lock is the pacer's. It is taken in a
-- subtransaction that is always rolled back, which releases it, because the caller's transaction may stay open for
-- hours. What was counted stays counted (others_sent), even if the caller rolls back, because it may have sent the
-- request by then. A SERIALIZABLE caller writes no row: services that each read pace_sends and add to it would make
-- each other fail, with a request counted that nobody sends.
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
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') AND transaction_timestamp() < clock_timestamp() - interval '1 second' THEN
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
    allowed := catalog_internal.sends_per_window(s.rate_limit, s.rate_window);
    SELECT count(*), min(sent_at) INTO own, oldest FROM catalog_internal.pace_sends WHERE sent_at > moment - span AND NOT other_user;
    SELECT * INTO others FROM catalog_internal.others_sent(span);
    -- After a refusal everyone backs off; then one half-open request goes out, and it is the mirror's. A half-open request nobody sends is not waited for.
    -- Where the mirror's credential is suspected (src/pace/view.ts), that of others may be right: they have backed off for a window, too.
    -- In the window before a half-open request they wait all the same: if it was the rate, refused requests of theirs, which count, would keep it refused.
    IF p.backoff_until > moment - interval '2 minutes' AND (p.episodes < 3 OR p.refusal = 'account-not-configured'
      OR p.backoff_until < moment + span OR coalesce(p.refused_at - p.refused_since < span, true)) THEN
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
  IF wait = 0 AND current_setting('transaction_isolation') <> 'serializable' THEN
    INSERT INTO catalog_internal.pace_sends (sent_at, lane, other_user) VALUES (moment, left(coalesce(take_request.lane, 'other'), 64), true);
  END IF;
  -- A clock that was ahead may have dated the end of a back-off by years.
  RETURN least(wait, 2147483647);
END
$$;

REVOKE ALL ON FUNCTION catalog.take_request(text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.take_request(text) TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.take_request(text) IS 'Leave to send one request to the partner: 0 = send it now, it is counted, even if your transaction is rolled back; else ask again after so many milliseconds. lane is a name of your choice, of 64 characters at most. In a REPEATABLE READ or SERIALIZABLE transaction that is older than a second it fails with CM002.';
