-- In how many answers of the last three days a price of the SKU had moved, and how many minutes that covers (since its
-- first price, at most three days): what its history says about its rate of change when it becomes live. The condition
-- on id leaves older partitions unopened.
CREATE OR REPLACE FUNCTION catalog_internal.past_moves(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT count(DISTINCT h.observed_at)::integer,
         CASE WHEN first_priced_at IS NULL THEN 0
           ELSE extract(epoch FROM least(statement_timestamp() - first_priced_at, interval '3 days')) / 60
         END
  FROM catalog.price_history h
  WHERE h.sku = of_sku AND h.observed_at > statement_timestamp() - interval '3 days'
    AND h.id > catalog_internal.position_before(statement_timestamp() - interval '3 days');
END;

REVOKE ALL ON FUNCTION catalog_internal.past_moves(text, timestamptz) FROM PUBLIC;
