-- What promises of a price's age (catalog.watchlist.max_age) may use per minute: requests, and with these, refreshes
-- of SKUs that count as live, and of others. A fifth of everything is left to all other SKUs. It is what the pacer
-- would allow at this moment (src/pace/policy.ts: ownMost, ceilingAt; after a back-off, with what requests resume at),
-- combined with what calls have taught. `hindered`: what keeps all requests back at present; null: nothing. SECURITY
-- DEFINER, because a seller's INSERT and a view call it.
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
  live := least(requests * budget, part * catalog_internal.live_rate());
  others := requests * greatest(1, per_call - budget);
  incident := (SELECT incident_since IS NOT NULL FROM catalog_internal.live_plan);
  hindered := CASE
    WHEN EXISTS (SELECT FROM catalog_internal.pause z WHERE catalog_internal.pause_holds(z)) THEN 'paused'
    WHEN p.backoff_until IS NOT NULL THEN 'backing off after a refusal'
    WHEN EXISTS (SELECT FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t)) THEN 'calls are failing'
  END;
END
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.promise_capacity() TO PUBLIC;
