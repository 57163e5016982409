-- Failed runs that were refused, and bulk calls that were rejected, are counted apart: an outage of a route does not make
-- a refusal wait as if the route itself were refused, nor does a wrong secret make a later failure wait for an hour. In a table of its own, because
-- sellers' transactions read the tasks, and a new column of these would wait for them.
CREATE TABLE "catalog_internal"."refused_tasks" (
	"task" text COLLATE "C" PRIMARY KEY NOT NULL,
	"refusals" integer NOT NULL
);
