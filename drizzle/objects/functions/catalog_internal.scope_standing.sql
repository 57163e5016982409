-- How a row of the ledger is to stand by scope_of: `in`; `out`: not asked for; `asked`: asked for its metadata,
-- because a rule needs that, and no answer has had any. What would never be due in scope, as it was removed and has
-- had its request, is not. `kept`: when it was, or would be, due. Nothing goes by `reason`: daemons of earlier
-- versions give it.
CREATE OR REPLACE FUNCTION catalog_internal.scope_standing(place text, state text, reason text, kept timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN place <> 'unknown' THEN place
    WHEN state <> 'pending' AND kept = 'infinity' THEN 'out'
    ELSE 'asked'
  END;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_standing(text, text, text, timestamptz) FROM PUBLIC;
