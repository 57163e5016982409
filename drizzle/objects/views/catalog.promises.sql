-- Each promise of a price's age, and its state. Which of them fit is weighed once a minute and after each change
-- (weigh_promises).
CREATE OR REPLACE VIEW catalog.promises AS
SELECT l.sku, l.max_age,
       k.is_read AND w.feasible AND d.outside_due_at IS NULL AND c.hindered IS NULL AS feasible,
       -- What is late at this moment, and would be a case with its answer, counts as broken.
       (catalog_internal.last_day(p.kept, p.hour) / nullif(catalog_internal.last_day(p.cases, p.hour) + coalesce(o.cases, 0), 0)::double precision)::real AS kept_share,
       CASE
         WHEN NOT k.is_read THEN 'not read by the mirror yet'
         WHEN s.state = 'removed' THEN 'removed'
         WHEN s.state = 'not_found' THEN 'not found'
         WHEN d.outside_due_at IS NOT NULL THEN 'out of scope'
         WHEN NOT w.feasible THEN 'the account cannot'
         WHEN c.hindered IS NOT NULL THEN c.hindered
         WHEN s.state = 'pending' THEN 'not priced yet'
         WHEN d.deferrals > 0 THEN 'deferred by the partner'
         WHEN d.failures > 0 OR d.largest_call IS NOT NULL THEN 'calls with it fail'
         WHEN d.doubt IS NOT NULL THEN 'waits for a second answer'
         WHEN o.cases > 0 THEN 'late'
       END AS because
FROM catalog.watchlist l
CROSS JOIN catalog_internal.promise_capacity() c
CROSS JOIN catalog_internal.moment() AS m(moment)
LEFT JOIN catalog_internal.watched w ON w.sku = l.sku
LEFT JOIN catalog.skus s ON s.sku = l.sku
LEFT JOIN catalog_internal.due d ON d.sku = l.sku
LEFT JOIN catalog_internal.promise_cases p ON p.sku = l.sku
CROSS JOIN LATERAL (SELECT coalesce(w.max_age = extract(epoch FROM l.max_age)::double precision, false) AND d.sku IS NOT NULL AS is_read) k
CROSS JOIN LATERAL (
  SELECT CASE WHEN k.is_read AND s.state = 'priced'
    THEN floor(extract(epoch FROM m.moment - greatest(s.priced_at, w.promised_since)) / w.max_age) END AS cases
) o
WHERE l.max_age IS NOT NULL;

DO $$
BEGIN
  IF to_regrole('catalog_watcher') IS NOT NULL THEN
    GRANT SELECT ON catalog.promises TO catalog_watcher;
  END IF;
END
$$;

COMMENT ON VIEW catalog.promises IS 'Promises that you ask for in catalog.watchlist.max_age: whether each can be kept, how often it was, and what speaks against it.';
COMMENT ON COLUMN catalog.promises.sku IS 'As catalog.watchlist has it.';
COMMENT ON COLUMN catalog.promises.max_age IS 'The SKU is asked for again before its price is older than that.';
COMMENT ON COLUMN catalog.promises.feasible IS 'Whether it can be kept at present. Where not all can, those of the greatest weight are, and among equal ones those of the greatest max_age; any other SKU is refreshed as if nothing were promised.';
COMMENT ON COLUMN catalog.promises.kept_share IS 'The part of the refreshes of the last day that were committed before the price was older than max_age; one that came after n times max_age counts as n that did not. Null: there was none yet.';
COMMENT ON COLUMN catalog.promises.because IS 'What speaks against it at present: not read by the mirror yet (nor where WATCHLIST_MAX_SKUS leaves it out), removed, not found, out of scope, the account cannot, paused, backing off after a refusal, calls are failing, not priced yet, deferred by the partner, calls with it fail, waits for a second answer, late; null: nothing.';
