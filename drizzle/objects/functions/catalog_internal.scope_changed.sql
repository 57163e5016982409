-- Only records a seller's statement, in a row of its own, and locks nothing that the mirror needs, however long the
-- transaction stays open. A daemon reads it after the commit (read_scope). SECURITY DEFINER, because catalog_watcher
-- has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.scope_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO catalog_internal.scope_changes (kinds, names)
    SELECT array_agg(kind), array_agg(value) FROM becomes HAVING count(*) > 0;
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO catalog_internal.scope_changes (kinds, names)
    SELECT array_agg(kind), array_agg(value)
    FROM was before FULL JOIN becomes after USING (kind, value)
    WHERE before.include IS DISTINCT FROM after.include
    HAVING count(*) > 0;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO catalog_internal.scope_changes (kinds, names)
    SELECT array_agg(kind), array_agg(value) FROM was HAVING count(*) > 0;
  ELSE
    INSERT INTO catalog_internal.scope_changes DEFAULT VALUES;
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.scope_changed() FROM PUBLIC;

CREATE OR REPLACE TRIGGER scope_added AFTER INSERT ON catalog.scope
REFERENCING NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.scope_changed();
CREATE OR REPLACE TRIGGER scope_updated AFTER UPDATE ON catalog.scope
REFERENCING OLD TABLE AS was NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.scope_changed();
CREATE OR REPLACE TRIGGER scope_deleted AFTER DELETE ON catalog.scope
REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.scope_changed();
CREATE OR REPLACE TRIGGER scope_emptied AFTER TRUNCATE ON catalog.scope
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.scope_changed();

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog.scope ENABLE ALWAYS TRIGGER scope_added, ENABLE ALWAYS TRIGGER scope_updated, ENABLE ALWAYS TRIGGER scope_deleted, ENABLE ALWAYS TRIGGER scope_emptied;
