-- What scope_of means for a row of the ledger: `in`; `out`: not requested; `asked`: requested for its metadata,
-- because a rule needs that and no answer has contained any. Not for a SKU that would never be due in scope, because
-- it was removed and has had its request. `kept`: when it was, or would be, due. Nothing depends on `reason`, which
-- daemons of earlier versions pass.
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
