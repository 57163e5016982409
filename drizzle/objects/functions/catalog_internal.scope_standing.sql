-- How a row of the ledger is to stand by scope_of: `in`; `out`: not asked for; `asked`: asked for once,
-- because a rule needs its metadata. A SKU that was answered without a record is asked for again only where
-- it was reported since. `kept`: when it was, or would be, due.
CREATE OR REPLACE FUNCTION catalog_internal.scope_standing(place text, state text, reason text, kept timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN place <> 'unknown' THEN place
    WHEN state = 'pending' OR reason = 'scope' OR reason IN ('new', 'changed') AND kept <= statement_timestamp() THEN 'asked'
    ELSE 'out'
  END;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_standing(text, text, text, timestamptz) FROM PUBLIC;
