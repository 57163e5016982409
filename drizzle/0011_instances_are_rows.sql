CREATE TABLE "catalog_internal"."instances" (
	"number" bigint PRIMARY KEY NOT NULL,
	"pid" integer NOT NULL,
	"backend_start" timestamp with time zone NOT NULL
);
