-- Marks SKUs due now, ahead of everything else, and ends their waits: deferrals, errors, and the pause of calls after
-- failures (unless an operator made it endless). What is being requested at the moment keeps its claim.
CREATE OR REPLACE FUNCTION catalog_internal.refresh_skus(skus text[], OUT marked bigint, OUT released bigint, OUT resumed boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
BEGIN
  SELECT count(*) INTO released FROM catalog_internal.due d
  WHERE d.sku = ANY (refresh_skus.skus) AND d.claim IS NULL AND d.held_until > clock_timestamp();
  marked := catalog_internal.mark_due(refresh_skus.skus, 'refresh');
  UPDATE catalog_internal.due d SET rank = 'Infinity', held_until = CASE WHEN d.claim IS NOT NULL THEN d.held_until END
  WHERE d.sku = ANY (refresh_skus.skus);
  resumed := catalog_internal.resume_calls();
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refresh_skus(text[]) FROM PUBLIC;
