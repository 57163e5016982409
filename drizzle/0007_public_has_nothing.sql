-- Functions are everyone's to call unless that is taken away. Nobody but the daemon has USAGE on catalog_internal, so none of
-- them could be called by its name; now none can be called at all but the two that catalog.sync_status calls as its reader.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA catalog, catalog_internal FROM PUBLIC;
--> statement-breakpoint
GRANT EXECUTE ON FUNCTION catalog_internal.catalog_state(catalog_internal.sync), catalog_internal.present_ceiling(catalog_internal.pace) TO PUBLIC;
