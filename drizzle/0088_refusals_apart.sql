-- Failed runs that were refused are counted apart: an outage of a route does not make a refusal wait as if the route
-- itself were refused, nor does a wrong secret make a later failure wait for an hour.
ALTER TABLE "catalog_internal"."tasks" ADD COLUMN "refusals" integer DEFAULT 0 NOT NULL;
