-- The form in which a rule's value is compared: SKUs and their prefixes exactly; brands, models and categories, in
-- rules and in metadata alike, without the case of A to Z and without surrounding blanks. By the collation "C", so
-- that it is the same in every database, forever.
CREATE OR REPLACE FUNCTION catalog_internal.scope_name(kind text, value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN kind IN ('sku', 'prefix') THEN value ELSE lower(btrim(value, E' \t\r\n') COLLATE "C") END;
END;

REVOKE ALL ON FUNCTION catalog_internal.scope_name(text, text) FROM PUBLIC;
