-- Requests of the account's other services in the window of so long, and when the first of them leaves it.
-- They are counted in sequences, because what is done to a sequence is seen by everybody at once, whatever
-- becomes of the caller's transaction: sixteen that are used in turns, each for a fifteenth of window and
-- guard, as its beginning in epoch milliseconds * 2^20 + how many. So a request counts until the end of its
-- fifteenth leaves the window. STABLE, though two calls may differ: a volatile one cannot run where a statement
-- that writes its result is read in parallel, and catalog.sync_status and catalog.sku_trust call it.
CREATE OR REPLACE FUNCTION catalog_internal.others_sent(span interval, OUT sent integer, OUT leaves_at timestamptz)
LANGUAGE sql STABLE PARALLEL UNSAFE
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

REVOKE ALL ON FUNCTION catalog_internal.others_sent(interval) FROM PUBLIC;
--> statement-breakpoint
-- Requests a minute that the pacer allows now: what it resumed with, grown since (src/pace/policy.ts, ceilingAt), and
-- what the account's other services leave it (ownMost). Their sequences are read only, which a parallel worker can, too.
CREATE OR REPLACE FUNCTION catalog_internal.present_ceiling(p catalog_internal.pace) RETURNS real
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (least(
      catalog_internal.sends_per_window(s.rate_share, s.rate_window),
      greatest(1, p.ceiling) + greatest(5, s.rate_share / 24.0)
        * greatest(0, extract(epoch FROM clock_timestamp() - p.raised_at)) / s.rate_window,
      CASE WHEN others.sent > 0 THEN greatest(1, s.rate_floor,
        catalog_internal.sends_per_window(s.rate_limit, s.rate_window) - others.sent - ceil(s.rate_limit * 0.05)) END
    ) * 60 / s.rate_window)::real
  FROM catalog_internal.settings s
  CROSS JOIN LATERAL catalog_internal.others_sent(make_interval(secs => s.rate_window + least(0.5, s.rate_window / 20))) AS others
  WHERE p.ceiling IS NOT NULL
$$;

-- A view calls it as its reader; without USAGE on the schema nobody can name it.
GRANT EXECUTE ON FUNCTION catalog_internal.present_ceiling(catalog_internal.pace) TO PUBLIC;
--> statement-breakpoint
-- How many changes catalog.changes has after a position, `most` are counted at most: by the indexes of its three
-- tables alone, as every scrape asks that for each follower. A batch has as many as it has positions. Planned for
-- the position each time, as in catalog.changes: one plan for all of them opens every chunk of the history.
CREATE OR REPLACE FUNCTION catalog_internal.changes_after(after bigint, most integer) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  start CONSTANT bigint := catalog_internal.id_before(after);
BEGIN
  RETURN least(most,
    (SELECT count(*) FROM (SELECT FROM catalog.price_history h WHERE h.id > start ORDER BY h.id LIMIT most) prices)
    + (SELECT count(*) FROM (SELECT FROM catalog.product_history h WHERE h.id > start ORDER BY h.id LIMIT most) products)
    + (SELECT coalesce(sum(b.last_id - greatest(b.id - 1, start)), 0) FROM (
         SELECT c.id, c.last_id FROM catalog_internal.change_batches c WHERE c.last_id > start ORDER BY c.last_id LIMIT most
       ) b));
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.changes_after(bigint, integer) FROM PUBLIC;
--> statement-breakpoint
-- Every follower, and how far it is behind: changes after its position (10,000 are counted at most) and for
-- how long the first of them has waited. A position that is lost (CM001) is said of its follower, and hides
-- no other.
CREATE OR REPLACE FUNCTION catalog_internal.followers_now()
RETURNS TABLE (name text, delivery text, "position" bigint, after_sku text, behind integer, behind_seconds double precision, lost boolean,
  held_by text, failures integer, failing_since timestamptz, last_status integer, last_said text, last_at timestamptz, dead_letters integer)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f catalog_internal.followers;
BEGIN
  FOR f IN SELECT * FROM catalog_internal.followers o ORDER BY o.name LOOP
    name := f.name; delivery := f.delivery; "position" := f."position"; after_sku := f.after_sku;
    failures := f.failures; failing_since := f.failing_since; last_status := f.last_status; last_said := f.last_said; last_at := f.last_at;
    held_by := CASE WHEN catalog_internal.session_lives(f.pid, f.backend_start) THEN f.held_by END;
    SELECT count(*) INTO dead_letters FROM catalog_internal.dead_letters d WHERE d.follower = f.name;
    behind := NULL; behind_seconds := NULL; lost := false;
    BEGIN
      SELECT greatest(0, extract(epoch FROM clock_timestamp() - c.observed_at)) INTO behind_seconds FROM catalog.changes(f."position", 1) c;
      behind := CASE WHEN FOUND THEN catalog_internal.changes_after(f."position", 10000) ELSE 0 END;
      behind_seconds := coalesce(behind_seconds, 0);
    EXCEPTION WHEN SQLSTATE 'CM001' THEN
      lost := true;
    END;
    -- Of a first copy the position stands until all of it is taken.
    IF f.after_sku IS NOT NULL AND behind > 0 THEN
      behind_seconds := greatest(0, extract(epoch FROM clock_timestamp() - f.updated_at));
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.followers_now() FROM PUBLIC;
