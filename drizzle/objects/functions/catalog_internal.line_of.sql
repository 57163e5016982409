-- The line of a SKU: one brand and model. A hash, because both may be too long for an index. Null if one of them is
-- unknown.
CREATE OR REPLACE FUNCTION catalog_internal.line_of(brand text, model text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN btrim(brand) <> '' AND btrim(model) <> '' THEN hashtextextended(brand, hashtextextended(model, 0)) END;
END;

REVOKE ALL ON FUNCTION catalog_internal.line_of(text, text) FROM PUBLIC;
