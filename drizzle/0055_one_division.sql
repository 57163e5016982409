-- What a window allows was divided in seconds by SQL and in milliseconds by the pacer: where nothing remains, they differed by one.

-- The most requests in window and guard of `most` in a window of so many seconds (src/pace/policy.ts,
-- sendsPerWindow): in milliseconds, as there. In seconds the same division can end a hair below a whole number.
CREATE OR REPLACE FUNCTION catalog_internal.sends_per_window(most double precision, rate_window double precision)
RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT greatest(1, floor(most * ms / (ms + least(500, ms / 20))) - 1)
  FROM (SELECT round(rate_window * 1000)) AS rate (ms)
);

REVOKE ALL ON FUNCTION catalog_internal.sends_per_window(double precision, double precision) FROM PUBLIC;

-- Requests a minute that the pacer allows now: what it resumed with, grown since (src/pace/policy.ts, ceilingAt).
CREATE OR REPLACE FUNCTION catalog_internal.present_ceiling(p catalog_internal.pace) RETURNS real
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (least(
      catalog_internal.sends_per_window(s.rate_share, s.rate_window),
      greatest(1, p.ceiling) + greatest(5, s.rate_share / 24.0)
        * greatest(0, extract(epoch FROM clock_timestamp() - p.raised_at)) / s.rate_window
    ) * 60 / s.rate_window)::real
  FROM catalog_internal.settings s WHERE p.ceiling IS NOT NULL
$$;

GRANT EXECUTE ON FUNCTION catalog_internal.present_ceiling(catalog_internal.pace) TO PUBLIC;

-- For the account's other services: permission to send one request with the account's api_key. They take
-- precedence: the mirror gives way down to rate_floor (src/pace/policy.ts, ownMost). The lock is the pacer's.
-- It is taken in a subtransaction that is always rolled back, which frees it: the caller's transaction may
-- stay open for hours. What is counted meanwhile stays counted (others_sent), also where the caller rolls
-- back: it may have sent by then.
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
    allowed := catalog_internal.sends_per_window(s.rate_limit, s.rate_window);
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
    INSERT INTO catalog_internal.pace_sends (sent_at, lane, other_user) VALUES (moment, left(coalesce(take_request.lane, 'other'), 64), true);
  END IF;
  RETURN wait;
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

COMMENT ON FUNCTION catalog.take_request(text) IS 'Leave to send one request to the partner: 0 = send it now, it is counted, even if your transaction is rolled back; else ask again after so many milliseconds. lane is a name of your choice, of 64 characters at most.';

-- What promises of a price's age (catalog.watchlist.max_age) may take, a minute: requests, and with these
-- refreshes of SKUs that count as live, and of others. A fifth of everything is left to all other SKUs. As
-- the pacer would allow it at this moment (src/pace/policy.ts: ownMost, ceilingAt; after a back-off with what
-- requests resume at), with what calls have taught. `hindered`: what keeps all requests back at present;
-- null: nothing. SECURITY DEFINER: a seller's INSERT and a view call it.
CREATE OR REPLACE FUNCTION catalog_internal.promise_capacity(
  OUT requests double precision, OUT live double precision, OUT others double precision, OUT incident boolean, OUT hindered text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part CONSTANT double precision := 0.8;
  g catalog_internal.settings;
  p catalog_internal.pace;
  most double precision;
  sent_by_others integer;
  per_call double precision;
  budget double precision;
BEGIN
  SELECT * INTO g FROM catalog_internal.settings;
  SELECT * INTO p FROM catalog_internal.pace;
  most := catalog_internal.sends_per_window(g.rate_share, g.rate_window);
  SELECT sent INTO sent_by_others FROM catalog_internal.others_sent(make_interval(secs => g.rate_window));
  IF sent_by_others > 0 THEN
    most := least(most, greatest(1, g.rate_floor, catalog_internal.sends_per_window(g.rate_limit, g.rate_window) - sent_by_others - ceil(g.rate_limit * 0.05)));
  END IF;
  most := least(most, CASE WHEN p.backoff_until IS NOT NULL THEN coalesce(p.resume_at, 20) ELSE catalog_internal.present_ceiling(p) * g.rate_window / 60 END);
  requests := part * most * 60 / g.rate_window;
  per_call := least(g.bulk_max_skus, (SELECT size FROM catalog_internal.call_size));
  SELECT least(per_call, greatest(1, floor(coalesce(live_budget, g.bulk_live_budget)))) INTO budget FROM catalog_internal.sync;
  live := least(requests * budget, part * (SELECT per_minute FROM catalog_internal.live_ceiling));
  others := requests * greatest(1, per_call - budget);
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  hindered := CASE
    WHEN EXISTS (SELECT FROM catalog_internal.pause z WHERE catalog_internal.pause_holds(z)) THEN 'paused'
    WHEN p.backoff_until IS NOT NULL THEN 'backing off after a refusal'
    WHEN EXISTS (SELECT FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t)) THEN 'calls are failing'
  END;
END
$$;

GRANT EXECUTE ON FUNCTION catalog_internal.promise_capacity() TO PUBLIC;
